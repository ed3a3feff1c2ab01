"""The whole course on toy sizes, twice with one seed: every promised file is there and every metric is equal.

Both passes run side by side, one thread each, so that two cores take about as long as one pass.
"""

import json
import os
import subprocess
import sys

import nbformat
import pytest
from test_hygiene import unfit_for_windows

from rlcas_utils.config import project_root
from rlcas_utils.records import read_record, sha256_tree
from rlcas_utils.stages import STAGES

NOTEBOOKS = sorted(path.stem for path in (project_root() / "notebooks").glob("[0-9][0-9]_*.ipynb"))
MACHINE_UNITS = {"s", "tokens/s", "GiB"}
CANARY = "CANARY-7f3a9d21"

pytestmark = [
    pytest.mark.chain,
    pytest.mark.skipif(list(STAGES) != NOTEBOOKS, reason=f"only {len(NOTEBOOKS)} of {len(STAGES)} notebooks"),
]


def start(runs_dir):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CANARY_API_KEY": CANARY}
    command = [sys.executable, "-m", "rlcas_utils.run", "--profile", "smoke", "--runs-dir", str(runs_dir)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=runs_dir
    )


@pytest.fixture(scope="module")
def passes(tmp_path_factory):
    """Run the chain twice from a foreign working directory; return the two run folders."""
    folders = [tmp_path_factory.mktemp(name) for name in ("first", "second")]
    running = [start(folder) for folder in folders]
    outputs = [process.communicate()[0] for process in running]
    for process, output in zip(running, outputs, strict=True):
        assert process.returncode == 0, output
        assert CANARY not in output
    return [folder / "smoke" for folder in folders]


def record_of(run_dir, stem):
    return read_record(run_dir / "records" / f"{stem}.json")


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_every_declared_file_record_and_figure_is_there(passes, stem):
    record = record_of(passes[0], stem)
    assert set(STAGES[stem].writes) <= set(record["outputs"])
    for name, expected in record["outputs"].items():
        assert sha256_tree(passes[0] / name) == expected
    assert record["figures"], "a notebook shows at least one figure"
    for name in record["figures"]:
        sidecar = json.loads((passes[0] / "figures" / f"{name}.json").read_text(encoding="utf-8"))
        assert sidecar["caption"]
        assert sidecar["alt"]
    assert (passes[0] / "html" / f"{stem}.html").stat().st_size > 10_000


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_the_same_seed_gives_the_same_metrics(passes, stem):
    first, second = (
        {k: m for k, m in record_of(folder, stem)["metrics"].items() if m["unit"] not in MACHINE_UNITS}
        for folder in passes
    )
    assert first == second
    assert first


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_a_stage_read_what_the_stages_before_it_wrote(passes, stem):
    made = {}
    for earlier in NOTEBOOKS[: NOTEBOOKS.index(stem)]:
        made |= record_of(passes[0], earlier)["outputs"]
    inputs = record_of(passes[0], stem)["inputs"]
    assert inputs.items() <= made.items()
    assert set(STAGES[stem].reads) <= set(inputs)


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_executed_notebooks_open_anywhere_and_are_short_to_read(passes, stem):
    notebook = nbformat.read(passes[0] / "notebooks" / f"{stem}.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert len(json.dumps(output)) < 1_000_000
            assert output.output_type != "error"
        printed = "".join(output.get("text", "") for output in cell.get("outputs", []))
        assert len(printed.splitlines()) <= 30, cell.source


def test_what_a_run_writes_has_names_that_all_systems_take(passes):
    names = [file.relative_to(passes[0]).as_posix() for file in passes[0].rglob("*")]
    assert unfit_for_windows(names) == []


def test_no_secret_is_in_anything_that_a_run_writes(passes):
    files = [file for folder in passes for file in folder.rglob("*") if file.is_file()]
    assert len(files) > 40
    for file in files:
        assert CANARY.encode() not in file.read_bytes(), file
