"""Check that this machine can run a language-model stage, before anything is downloaded."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """What decides whether a stage can run.

    Attributes:
        cuda: A CUDA device is attached.
        bitsandbytes: Installed version, or None.
        loaded_bitsandbytes: Version in this process, or None if it was not imported yet.
        free_disk_gib: Free space where models are kept.
    """

    cuda: bool
    bitsandbytes: str | None
    loaded_bitsandbytes: str | None
    free_disk_gib: float


def gather_facts() -> Facts:
    """Look at this machine; imports nothing heavy except torch."""
    import shutil
    import sys
    from importlib import metadata

    import torch

    from rlcas_utils.config import project_root

    try:
        installed = metadata.version("bitsandbytes")
    except metadata.PackageNotFoundError:
        installed = None
    loaded = getattr(sys.modules.get("bitsandbytes"), "__version__", None)
    free = shutil.disk_usage(project_root()).free / 2**30
    return Facts(torch.cuda.is_available(), installed, loaded, free)


def problems(facts: Facts, *, needs_gpu: bool, quantize: bool, disk_gib: float) -> list[str]:
    """Return one sentence per obstacle; an empty list means go.

    Args:
        facts: From ``gather_facts``.
        needs_gpu: The model is too large for a CPU.
        quantize: NF4 is asked for.
        disk_gib: Space the stage writes or downloads.
    """
    found = []
    if needs_gpu and not facts.cuda:
        found.append(
            "No GPU is attached: attach a GPU runtime (Colab: Runtime > Change runtime type), "
            "or set PROFILE to cpu for the same course with a small model."
        )
    if quantize and facts.bitsandbytes is None:
        found.append("bitsandbytes is not installed, so NF4 cannot be used: pip install bitsandbytes")
    if quantize and facts.loaded_bitsandbytes not in (None, facts.bitsandbytes):
        found.append(
            f"bitsandbytes {facts.loaded_bitsandbytes} is in memory but {facts.bitsandbytes} is on disk: "
            "restart the runtime, then run from the top."
        )
    if facts.free_disk_gib < disk_gib:
        found.append(
            f"The stage needs {disk_gib:.0f} GiB of disk and {facts.free_disk_gib:.0f} GiB are free: "
            "delete old runs below runs/, or use a smaller model."
        )
    return found
