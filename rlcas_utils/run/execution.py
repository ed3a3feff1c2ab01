"""Run one notebook with papermill, and say in one screen what went wrong when it did."""

from __future__ import annotations

import logging
import re
import warnings
from pathlib import Path

import papermill
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError

from rlcas_utils.config import Profile, project_root
from rlcas_utils.parameters import read_notebook
from rlcas_utils.run.board import Board
from rlcas_utils.run.checks import StageFailure, StageFilesOnDisk, faults, files_of
from rlcas_utils.run.executed import clean, redact, redact_file, write_html
from rlcas_utils.run.kernel import kernel_manager
from rlcas_utils.run.plan import PlannedStage, portable

SHOWN_SOURCE_LINES = 12
SHOWN_TRACE_LINES = 10
SHOWN_MESSAGE_LINES = 8
SHOWN_WIDTH = 120
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def run_stage(stage: PlannedStage, profile: Profile, run_dir: Path, board: Board) -> None:
    """Execute a notebook and check that it did all it should.

    Args:
        stage: The notebook and its values.
        profile: Decides the kernel's environment.
        run_dir: The run folder.
        board: Told about cells and printed lines.

    Raises:
        StageFailure: A cell failed, the kernel died, or something that should be there is not.
    """
    files = files_of(stage.stem, run_dir)
    files.executed.parent.mkdir(parents=True, exist_ok=True)
    board.start(stage.stem, len(read_notebook(stage.notebook)["cells"]))
    try:
        _execute(stage, profile, files, board)
    except PapermillExecutionError as error:
        cell = board.lines[stage.stem].cell
        raise StageFailure(_cell_failure(stage.stem, cell, files.executed, error)) from error
    except DeadKernelError as error:
        raise StageFailure(_dead_kernel(stage, files.executed, board)) from error
    finally:
        clean(files.executed, portable(stage.notebook))
        redact_file(files.log)
    found = faults(stage, run_dir)
    if found:
        lines = "\n".join(f"  - {fault}" for fault in found)
        raise StageFailure(f"{stage.stem} ran to its end but is not finished:\n{lines}")
    write_html(files.executed, files.html)


def _execute(stage: PlannedStage, profile: Profile, files: StageFilesOnDisk, board: Board) -> None:
    logging.disable(logging.ERROR)  # what nbclient logs is said better by StageFailure
    cells = {cell.get("id"): n for n, cell in enumerate(read_notebook(stage.notebook)["cells"], start=1)}
    files.log.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(), files.log.open("w", encoding="utf-8") as log:
        warnings.simplefilter("ignore")  # deprecations inside papermill; the notebook's own are in its output
        papermill.execute_notebook(
            stage.notebook,
            files.executed,
            parameters=stage.values,
            cwd=project_root(),
            progress_bar=False,
            start_timeout=120,
            # Everything is on disk when the last cell ends; a graceful end would hold Ctrl-C up for seconds.
            shutdown_kernel="immediate",
            stdout_file=board,
            kernel_manager_class=kernel_manager(profile, log),
            on_cell_start=lambda cell, cell_index: board.at_cell(cells.get(cell.get("id"))),
        )


def _cell_failure(stem: str, cell: int, executed: Path, error: PapermillExecutionError) -> str:
    message = f"{error.ename}: {error.evalue}".splitlines()
    trace = ANSI.sub("", "\n".join(error.traceback)).splitlines()[: -len(message)]
    lines = [
        f"{stem} failed in cell {cell}, In [{error.exec_count}]:",
        "",
        *_tail(error.source.splitlines(), SHOWN_SOURCE_LINES),
        "",
        *_tail([line[:SHOWN_WIDTH] for line in trace], SHOWN_TRACE_LINES),
        "",
        *message[:SHOWN_MESSAGE_LINES],
        "",
        _where(executed),
    ]
    return redact("\n".join(lines))


def _dead_kernel(stage: PlannedStage, executed: Path, board: Board) -> str:
    cell = board.lines[stage.stem].cell
    return (
        f"{stage.stem}: the kernel died in cell {cell}. No Python error was raised; most often the system "
        f"ended it because memory ran out. Close other programs or choose smaller values.\n{_where(executed)}"
    )


def _where(executed: Path) -> str:
    return f"What ran so far: {portable(executed)}"


def _tail(lines: list[str], most: int) -> list[str]:
    kept = lines[-most:]
    return [*(["    ..."] if len(lines) > most else []), *(f"    {line}" for line in kept)]
