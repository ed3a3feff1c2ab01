"""The kernel of a notebook: always this interpreter, with an environment that keeps runs quiet and equal."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

from rlcas_utils.config import Profile

QUIET = {
    "TRL_EXPERIMENTAL_SILENCE": "1",
    # tqdm asks for a widget package that a headless run has no use for.
    "PYTHONWARNINGS": "ignore:IProgress not found",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "TOKENIZERS_PARALLELISM": "false",
    # Progress bars of libraries leave broken widget data and thousands of lines in a saved notebook.
    "TQDM_DISABLE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
}
# glibc would hand the large blocks of a training step back to Linux and fetch them anew in the next step;
# keeping them makes a step of notebook 04 a fifth shorter. Other systems ignore these names.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**34)}


def kernel_environment(profile: Profile) -> dict[str, str]:
    """Return the environment variables that a profile's kernels get on top of the runner's own.

    A number of threads that the user has set already is left alone.
    """
    environment = {**QUIET, **KEEP_MEMORY, "PYTHONHASHSEED": "0"}
    if profile.offline:
        environment |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    if profile.threads and "OMP_NUM_THREADS" not in os.environ:
        environment["OMP_NUM_THREADS"] = str(profile.threads)
    return environment


def kernel_manager(profile: Profile, log: TextIO) -> type[AsyncKernelManager]:
    """Return a kernel manager class that starts this interpreter.

    Jupyter would look for a kernel named `python3` and could find one of another Python on the machine.

    Args:
        profile: Decides the environment.
        log: Takes what the process writes past the notebook, such as messages of compiled libraries.
    """
    spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "--log-level=ERROR", "-f", "{connection_file}"],
        display_name="Python 3",
        language="python",
        env=kernel_environment(profile),
    )

    class InterpreterKernel(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return spec

        async def start_kernel(self, **options: Any) -> None:
            await self._async_start_kernel(stdout=log, stderr=log, **options)

    return InterpreterKernel
