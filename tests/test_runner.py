import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toy_course import add_notebook, environment, make_project, run, stand_in_for_torch

from rlcas_utils.parameters import read_notebook
from rlcas_utils.records import read_record

FIRST = (
    "stage.output('rows.txt').write_text('1')\nstage.metric('m', LEARNING_RATE, n=1, seeds=[SEED])",
    "record = stage.finish()",
)
SECOND = (
    "rows = stage.input('01_first/rows.txt')\nstage.output('sum.txt').write_text('2')",
    "record = stage.finish()",
)
PIECE = """\
def compute():
    return open("count.txt", "a").write("x")

stage.cached("piece", compute)"""
KILLED_ONCE = """\
if not os.path.exists("killed"):
    open("killed", "w").close()
    os.kill(os.getpid(), signal.SIGKILL)"""
CANARY = "CANARY-7f3a9d21"


@pytest.fixture
def project(tmp_path):
    made = make_project(tmp_path / "a course")  # a path with a space
    add_notebook(made, "01_first", *FIRST)
    add_notebook(made, "02_second", *SECOND)
    return made


def cpu(project) -> Path:
    return project / "runs" / "cpu"


def test_faulty_requests_are_refused_before_any_compute(project):
    profile = project / "profiles" / "cpu.yaml"
    profile.write_text(profile.read_text().replace("SEED: 3", "SEED: 3, LEARNING_RATE: 1e-5"))
    arguments = ("--set", "sead=7", "--set", "02.WIDTH=[1]", "--set", f"api_key={CANARY}")
    done = run(project, *arguments)
    assert done.returncode == 2
    assert "Did you mean SEED?" in done.stdout
    assert "02_second has no parameter WIDTH. Did you mean WIDTHS?" in done.stdout
    assert "YAML reads 1e-5 as text; write 1.0e-05" in done.stdout
    assert "api_key looks like a secret" in done.stdout
    assert CANARY not in done.stdout + done.stderr
    assert not (project / "runs").exists()


def test_a_chain_runs_once_and_only_what_changed_runs_again(project):
    done = run(project, "--set", "SEED=7", "--set", "01.LEARNING_RATE=1e-4")
    assert done.returncode == 0, done.stdout + done.stderr
    record = read_record(cpu(project) / "records" / "01_first.json")
    assert (record["seed"], record["parameters"]["SEED"], record["metrics"]["m"]["value"]) == (7, 7, 1e-4)
    html = (cpu(project) / "html" / "01_first.html").read_text()
    assert "01_first" in html
    again = run(project, "--set", "SEED=7", "--set", "01.LEARNING_RATE=1e-4")
    assert again.stdout.count("finished before") == 2
    add_notebook(project, "02_second", *SECOND, "print('one more cell')")
    changed = run(project, "--set", "SEED=7", "--set", "01.LEARNING_RATE=1e-4")
    assert "01_first: finished before" in changed.stdout
    assert "02_second: done" in changed.stdout
    (cpu(project) / "01_first" / "rows.txt").write_text("half a ro")
    mended = run(project, "--set", "SEED=7", "--set", "01.LEARNING_RATE=1e-4")
    assert "01_first: done" in mended.stdout
    assert (cpu(project) / "01_first" / "rows.txt").read_text() == "1"


def test_a_failure_fits_on_one_screen_and_names_the_cell_of_the_source(project):
    lines = "\n".join(f"x{i} = {i}" for i in range(30))
    add_notebook(
        project, "02_second", f"{lines}\nraise ValueError('boom ' + os.environ['MY_API_KEY'])", *SECOND
    )
    done = run(project, MY_API_KEY=CANARY)
    assert done.returncode == 1
    assert "02_second failed in cell 5" in done.stdout
    assert "ValueError: boom <MY_API_KEY>" in done.stdout
    assert "go on with: make course PROFILE=cpu" in done.stdout
    assert len(done.stdout.splitlines()) <= 45
    for file in project.rglob("*"):
        assert not file.is_file() or CANARY.encode() not in file.read_bytes(), file


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("import sys\nsys.exit(0)", "code cells [7, 8] never ran"),
        ("os._exit(0)", "01_first: the kernel died in cell 5"),
        ("stage.finish = dict", "01_first.json does not exist"),
        ("stage.output('model.bin')", "never wrote it"),
    ],
)
def test_leaving_early_or_leaving_something_out_is_no_success(project, cell, message):
    add_notebook(project, "01_first", cell, *FIRST)
    done = run(project)
    assert done.returncode == 1
    assert message in done.stdout
    assert "02_second" not in done.stdout


def test_a_killed_kernel_stops_the_run_and_the_resumed_one_computes_nothing_twice(project):
    add_notebook(project, "02_second", PIECE, KILLED_ONCE, *SECOND)
    started = time.monotonic()
    done = run(project)
    assert done.returncode == 1
    assert time.monotonic() - started < 60
    assert "02_second: the kernel died in cell 6" in done.stdout
    assert read_notebook(cpu(project) / "notebooks" / "02_second.ipynb")["cells"]
    resumed = run(project)
    assert resumed.returncode == 0, resumed.stdout
    assert "01_first: finished before" in resumed.stdout
    assert (project / "count.txt").read_text() == "x"


def test_ctrl_c_says_how_to_go_on_within_a_second_and_a_second_run_is_refused_meanwhile(project):
    """The cell is one long call into C, which a polite interrupt could not stop."""
    add_notebook(project, "01_first", "open('ready', 'w').close()\nsum(range(10**11))", *FIRST)
    stand_in_for_torch(project)
    command = [sys.executable, "-m", "rlcas_utils.run"]
    running = subprocess.Popen(
        command,
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A suite that a script started in the background ignores Ctrl-C, and so would all its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    while not (project / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert "Another run is using runs/cpu" in run(project).stdout
    running.send_signal(signal.SIGINT)
    interrupted = time.monotonic()
    said = next(line for line in running.stdout if line.startswith("Stopped."))
    assert time.monotonic() - interrupted < 1
    assert "go on with: make course PROFILE=cpu" in said
    assert "Traceback" not in running.communicate(timeout=10)[0]
    assert running.returncode == 130


def test_the_kernel_is_this_interpreter_even_when_another_python3_is_registered(project, tmp_path):
    decoy = tmp_path / "jupyter" / "kernels" / "python3"
    decoy.mkdir(parents=True)
    (decoy / "kernel.json").write_text(
        '{"argv": ["/bin/false"], "display_name": "other", "language": "python"}'
    )
    show = "import sys\n\nstage.output('python.txt').write_text(f'{sys.executable} {os.getcwd()}')"
    add_notebook(project, "01_first", show, "record = stage.finish()")
    done = run(project, "--only", "1", JUPYTER_PATH=str(tmp_path / "jupyter"))
    assert done.returncode == 0, done.stdout
    assert (cpu(project) / "01_first" / "python.txt").read_text() == f"{sys.executable} {project}"


def test_executed_notebooks_hold_no_folder_of_this_machine(project):
    assert run(project, "--only", "01").returncode == 0
    for file in (cpu(project) / "notebooks" / "01_first.ipynb", cpu(project) / "records" / "01_first.json"):
        assert str(project) not in file.read_text()


def test_runs_dir_force_and_unknown_notebooks(project, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    for arguments, state in (((), "done"), ((), "finished before"), (("--force",), "done")):
        done = run(project, "--only", "01", "--runs-dir", str(elsewhere), *arguments)
        assert f"01_first: {state}" in done.stdout
    assert (elsewhere / "cpu" / "records" / "01_first.json").is_file()
    failed = run(project, "--only", "02", "--runs-dir", "a b", "--set", "SEED=4", "--force")
    assert (
        "go on with: python -m rlcas_utils.run --profile cpu --only 02 --set SEED=4 --runs-dir 'a b'"
        in failed.stdout
    )
    assert "'09' is not a notebook; choose from 01_first, 02_second" in run(project, "--only", "09").stdout


def test_a_missing_hand_off_names_the_command(project):
    done = run(project, "--only", "02")
    assert done.returncode == 1
    assert "make course PROFILE=cpu ONLY=01_first" in done.stdout
    assert os.sep.join(("runs", "cpu", "notebooks", "02_second.ipynb")) in done.stdout
