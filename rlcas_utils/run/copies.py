"""Copies of the notebooks for a class, made from cell tags: `make student` and `make teacher`.

A student's copy has no solutions. A teacher's copy has each stub replaced by the solution on the page, and is
executed in the smoke profile, so that what a class will see has been seen to run.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from rlcas_utils.config import ConfigError, load_profile, project_root
from rlcas_utils.parameters import cell_source, cell_tags, notebook_text, read_notebook
from rlcas_utils.records import write_atomic
from rlcas_utils.run.board import Board
from rlcas_utils.run.checks import StageFailure, faults, files_of
from rlcas_utils.run.plan import PlannedStage, make_plan, portable, select

SOLUTION = re.compile(r"```python\n(.*?)```", re.DOTALL)
OUTWARD_LINK = re.compile(r"(\]\(|src=\")\.\./")
NOT_ATTEMPTED = "not attempted yet"

Notebook = dict[str, Any]


def student(notebook: Notebook) -> Notebook:
    """Return a notebook without its solutions.

    Args:
        notebook: Parsed notebook of the course.
    """
    kept = [cell for cell in notebook["cells"] if not _tag(cell, "solution")]
    return _two_folders_down(notebook | {"cells": kept})


def teacher(notebook: Notebook) -> Notebook:
    """Return a notebook with every stub replaced by the solution on the page.

    Args:
        notebook: Parsed notebook of the course.

    Raises:
        ConfigError: A stub without a solution, or a solution that does not define the stub's function.
    """
    solutions = {
        name: SOLUTION.search(cell_source(cell))
        for cell in notebook["cells"]
        if (name := _tag(cell, "solution"))
    }
    cells = []
    for cell in notebook["cells"]:
        name = _tag(cell, "exercise")
        if name:
            if not solutions.get(name):
                raise ConfigError(
                    f"exercise {name} has no solution cell with code, so no teacher's copy can be made. "
                    f"Tag one with solution:{name} and put the code into a ```python block."
                )
            cell = cell | {"source": _filled(cell_source(cell), solutions[name][1], name)}
        cells.append(cell)
    return _two_folders_down(notebook | {"cells": cells})


def make_student(only: str, target: Path) -> list[Path]:
    """Write the students' copies.

    Args:
        only: Notebooks such as "02,03"; empty for all.
        target: Folder to write to.

    Returns:
        The files written.
    """
    return [
        _write(student(read_notebook(stage.notebook)), target / stage.notebook.name)
        for stage in _stages(only, target)
    ]


def make_teacher(only: str, target: Path) -> list[Path]:
    """Write the teachers' copies and execute them in the smoke profile, in a run folder beside them.

    Args:
        only: Notebooks such as "02,03"; empty for all.
        target: Folder to write to; the run folder is `target`/smoke.

    Returns:
        The executed copies.

    Raises:
        StageFailure: A copy failed, or an exercise of it counted as not attempted.
    """
    from rlcas_utils.run.execution import run_stage  # papermill takes seconds to import

    stages, run_dir, profile = _stages(only, target), target / "smoke", load_profile("smoke")
    written = []
    with Board({stage.stem: None for stage in stages}) as board:
        for stage in stages:
            filled = _write(teacher(read_notebook(stage.notebook)), run_dir / "filled" / stage.notebook.name)
            stage = PlannedStage(stage.stem, filled, stage.values)
            executed = files_of(stage.stem, run_dir).executed
            if faults(stage, run_dir) or executed.stat().st_mtime < filled.stat().st_mtime:
                run_stage(stage, profile, run_dir, board)
            board.end(stage.stem, "done")
            _all_attempted(executed)
            written.append(Path(shutil.copyfile(executed, target / executed.name)))
    return written


def main(arguments: list[str] | None = None) -> int:
    """Write the copies and say where they are."""
    parser = argparse.ArgumentParser(prog="python -m rlcas_utils.run.copies", description=main.__doc__)
    parser.add_argument("kind", choices=["student", "teacher"])
    parser.add_argument("--only", default="", metavar="NB", help="these notebooks, such as 02 or 02,03")
    parser.add_argument("--target", type=Path, help="folder to write to (default: build/<kind>)")
    options = parser.parse_args(arguments)
    target = (options.target or project_root() / "build" / options.kind).resolve()
    try:
        written = {"student": make_student, "teacher": make_teacher}[options.kind](options.only, target)
    except (ConfigError, StageFailure) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(written)} {options.kind}'s copies: {portable(target)}")
    return 0


def _stages(only: str, target: Path) -> list[PlannedStage]:
    return select(make_plan(load_profile("smoke"), target / "smoke"), only)


def _tag(cell: dict[str, Any], kind: str) -> str:
    """Return NAME of a cell tagged `kind:NAME`, or an empty text."""
    return next((tag.partition(":")[2] for tag in cell_tags(cell) if tag.startswith(f"{kind}:")), "")


def _filled(stub: str, solution: str, name: str) -> str:
    """Return a stub cell whose function is the solution's."""
    functions = {n.name: n for n in ast.parse(stub).body if isinstance(n, ast.FunctionDef)}
    solved = {n.name for n in ast.parse(solution).body if isinstance(n, ast.FunctionDef)}
    if name not in functions or name not in solved:
        raise ConfigError(f"exercise {name}: stub and solution must both define {name}; name them alike.")
    lines, function = stub.splitlines(), functions[name]
    return "\n".join([*lines[: function.lineno - 1], solution.strip(), *lines[function.end_lineno :]])


def _two_folders_down(notebook: Notebook) -> Notebook:
    """Return a notebook whose links out of notebooks/ fit build/student/ and build/teacher/."""
    cells = [
        cell | {"source": OUTWARD_LINK.sub(r"\g<1>../../", cell_source(cell))}
        if cell["cell_type"] == "markdown"
        else cell
        for cell in notebook["cells"]
    ]
    return notebook | {"cells": cells}


def _write(notebook: Notebook, path: Path) -> Path:
    text = notebook_text(notebook)
    # An equal file keeps its time, by which an executed copy is known to be newer than its source.
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)
    return path


def _all_attempted(executed: Path) -> None:
    for cell in read_notebook(executed)["cells"]:
        name = _tag(cell, "exercise")
        if name and any(NOT_ATTEMPTED in "".join(o.get("text", "")) for o in cell.get("outputs", [])):
            raise StageFailure(
                f"{executed.stem}: exercise {name} counted as not attempted although its solution was filled "
                "in; the solution on the page raises NotImplementedError."
            )


if __name__ == "__main__":
    sys.exit(main())
