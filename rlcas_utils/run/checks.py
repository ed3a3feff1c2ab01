"""Is a stage finished? Decided by its record, its fingerprint and the hash of everything it handed on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlcas_utils.config import ConfigError
from rlcas_utils.fingerprint import stage_fingerprint, tree_hash
from rlcas_utils.records import RecordError, read_record
from rlcas_utils.run.executed import unexecuted_cells
from rlcas_utils.run.plan import PlannedStage
from rlcas_utils.stages import stage_files


class StageFailure(RuntimeError):
    """A notebook that failed or left something out; the text fits on one screen."""


@dataclass(frozen=True)
class StageFilesOnDisk:
    """Where the runner finds what one stage leaves behind."""

    record: Path
    executed: Path
    html: Path
    log: Path


def files_of(stem: str, run_dir: Path) -> StageFilesOnDisk:
    """Return the paths of a stage's record, executed notebook, HTML and log."""
    return StageFilesOnDisk(
        record=run_dir / "records" / f"{stem}.json",
        executed=run_dir / "notebooks" / f"{stem}.ipynb",
        html=run_dir / "html" / f"{stem}.html",
        log=run_dir / "logs" / f"{stem}.log",
    )


def faults(stage: PlannedStage, run_dir: Path) -> list[str]:
    """Return why a stage does not count as finished; an empty list when it does.

    Args:
        stage: The stage as it is planned now.
        run_dir: The run folder.
    """
    files = files_of(stage.stem, run_dir)
    found = _cell_faults(files.executed)
    try:
        record = read_record(files.record)
    except RecordError as error:
        return [*found, str(error)]
    if record["fingerprint"] != stage_fingerprint(stage.notebook, stage.values, run_dir):
        found.append("its code, parameters, data or inputs have changed since it started; run it again")
    for name in stage_files(stage.stem).writes:
        if name not in record["outputs"]:
            found.append(f"its record does not list {name}, which the course expects; stage.output makes it")
    found += _changed(record["outputs"], run_dir, "")
    found += _changed(record["figures"], run_dir / "figures", ".png")
    return found


def _cell_faults(executed: Path) -> list[str]:
    try:
        left_out = unexecuted_cells(executed)
    except FileNotFoundError:
        return ["the executed notebook is not there"]
    except ConfigError as error:
        return [f"the executed notebook is damaged: {error}"]
    return [f"code cells {left_out} never ran: the notebook left early"] if left_out else []


def _changed(hashes: dict[str, str], folder: Path, ending: str) -> list[str]:
    return [
        f"{name}{ending} is missing or not what the record says"
        for name, expected in hashes.items()
        if tree_hash(folder / f"{name}{ending}") != expected
    ]
