"""A course of tiny notebooks in a temporary folder, beside a copy of the plumbing, to test the runner."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat import v4

ROOT = Path(__file__).resolve().parents[1]
PARAMETERS = """\
PROFILE: str = "a10g"  # scale of the run
SEED: int = 0  # seed of all generators
RUN_DIR: str = ""  # run folder; empty: runs/PROFILE
LEARNING_RATE: float = 1e-5  # step size
WIDTHS: list[int] = [8, 8]  # units of each layer"""
PROFILE = "name: {name}\ndescription: toy\noffline: true\nnotebooks:\n  01_first: {{SEED: 3}}\n"
FAST_TORCH = (
    "class cuda:\n    is_available = staticmethod(lambda: False)\n\n\ndef manual_seed(seed):\n    pass\n"
    "\n\ndef get_num_threads():\n    return 1\n"
)


def make_project(folder: Path) -> Path:
    """Make an empty course: the plumbing modules, two profiles, no notebooks."""
    (folder / "rlcas_utils").mkdir(parents=True)
    for source in (ROOT / "rlcas_utils").glob("*.py"):
        shutil.copy(source, folder / "rlcas_utils")
    run = Path("rlcas_utils", "run")
    shutil.copytree(ROOT / run, folder / run, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "requirements.lock", folder)
    (folder / "notebooks").mkdir()
    (folder / "profiles").mkdir()
    for name in ("cpu", "smoke"):
        (folder / "profiles" / f"{name}.yaml").write_text(PROFILE.format(name=name), encoding="utf-8")
    return folder


def add_notebook(project: Path, stem: str, *cells: str, parameters: str = PARAMETERS) -> Path:
    """Write a notebook: imports, parameters, `stage = open_stage(...)`, the given cells."""
    setup = f'from rlcas_utils.stage import open_stage\n\nstage = open_stage("{stem}", globals())'
    notebook = v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        cells=[
            v4.new_markdown_cell(f"# {stem}"),
            v4.new_code_cell("import json\nimport os\nimport signal\nimport time"),
            v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}),
            v4.new_code_cell(setup),
            *(v4.new_code_cell(cell) for cell in cells),
        ],
    )
    path = project / "notebooks" / f"{stem}.ipynb"
    nbformat.write(notebook, path)
    return path


def environment(**extra: str) -> dict[str, str]:
    """Return an environment for a run from the project's own folder."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **extra}


def stand_in_for_torch(project: Path) -> None:
    """Put a module in torch's place, so that kernels start fast."""
    (project / "torch.py").write_text(FAST_TORCH, encoding="utf-8")


def run(project: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run the runner of a toy course and wait for it."""
    stand_in_for_torch(project)
    return subprocess.run(
        [sys.executable, "-m", "rlcas_utils.run", *arguments],
        cwd=project,
        env=environment(**extra),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
