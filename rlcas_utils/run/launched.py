"""The cells of a notebook that several processes run: those tagged `launch`, and nothing that writes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlcas_utils import stage as stage_module
from rlcas_utils.config import ConfigError
from rlcas_utils.handoffs import find_handoff
from rlcas_utils.parameters import cell_source, cell_tags, read_notebook
from rlcas_utils.run.plan import PlannedStage

TAG = "launch"
TIMEOUT_S = 7200  # a process may wait for another's long episodes; the libraries' own limit would end it


class EndOfCell(Exception):
    """A cell would now start work that one process does later, in the notebook."""


class LaunchedStage:
    """What the cells get as `stage`: they read as in the notebook; what they write is thrown away.

    Attributes:
        folder: The stage's folder, for checkpoints.
        seed: The seed.
    """

    def __init__(self, planned: PlannedStage, run_dir: Path, scratch: Path) -> None:
        """Take the plan of the stage, the run folder, and a folder for what nobody needs."""
        self.folder, self.seed = run_dir / planned.stem, planned.values["SEED"]
        self._planned, self._run_dir, self._scratch = planned, run_dir, scratch

    def input(self, name: str, sample: str | None = None) -> Path:
        """Return what an earlier stage wrote, as `Stage.input` does."""
        profile, stem = self._planned.values["PROFILE"], self._planned.stem
        return find_handoff(name, self._run_dir, profile, stem, sample)[0]

    def output(self, name: str) -> Path:
        """Return a path below the scratch folder: the notebook writes the hand-offs."""
        return self._scratch / name

    def cached(self, name: str, compute: Callable[[], Any]) -> Any:
        """Leave evaluations to the notebook.

        Raises:
            EndOfCell: For every piece but the screening of tasks, which is empty here.
        """
        if name != "screen":
            raise EndOfCell
        return compute()


def split_config(config: Any, processes: int) -> Any:
    """Split the passes of an optimizer step over the processes, in place.

    Args:
        config: `SFTConfig` or `GRPOConfig` as the notebook makes it for one process.
        processes: Processes of the launch.

    Raises:
        ConfigError: The passes do not divide, so a step would see more or less than the recipe says.
    """
    passes = share(config.gradient_accumulation_steps, processes)
    config.gradient_accumulation_steps = passes
    if hasattr(config, "steps_per_generation"):
        config.steps_per_generation = passes
        config.generation_batch_size = config.per_device_train_batch_size * passes * processes
        config.vllm_importance_sampling_mode = "token_truncate"  # "sequence_mask" zeroes long episodes
    config.ddp_timeout = TIMEOUT_S
    config.ddp_find_unused_parameters = False
    return config


def share(total: int, processes: int) -> int:
    """Return one process's part of the passes of an optimizer step.

    Raises:
        ConfigError: They do not divide, so a step would see more or less than the recipe says.
    """
    if total % processes:
        raise ConfigError(
            f"{total} passes per optimizer step do not divide by {processes} processes; a step would see "
            "another number of samples than the recipe says. Start a number of processes that divides them, "
            "or change the batch size."
        )
    return total // processes


def run_cells(planned: PlannedStage, stage: LaunchedStage, processes: int) -> dict[str, Any]:
    """Run the notebook's cells tagged `launch` and return their names.

    Args:
        planned: The stage with its values.
        stage: What the cells get as `stage`.
        processes: Processes of the launch; settings are split as soon as a cell has made them.
    """
    names: dict[str, Any] = {"__name__": "__launch__", **planned.values}
    stage_module.open_stage = lambda notebook, namespace: stage
    split = False
    for cell in read_notebook(planned.notebook)["cells"]:
        if cell["cell_type"] != "code" or TAG not in cell_tags(cell):
            continue
        with contextlib.suppress(EndOfCell):
            exec(compile(cell_source(cell), planned.notebook.name, "exec"), names)
        if "config" in names and not split:
            split_config(names["config"], processes)
            split = True
    return names
