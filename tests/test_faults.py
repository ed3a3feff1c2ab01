"""What can go wrong on a disk: one clear sentence each, nothing lost, and the next run goes on from there."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
from safetensors.numpy import save_file
from toy_course import add_notebook, environment, make_project, run, stand_in_for_torch

from rlcas_utils import records
from rlcas_utils.checkpoints import STATE, last_checkpoint
from rlcas_utils.handoffs import MissingHandoff, find_handoff
from rlcas_utils.records import WriteFailed, write_atomic, write_json
from rlcas_utils.run import command
from rlcas_utils.stage_folder import STATE_FILE, StageBusy, StageFolder

FIRST = ("stage.output('rows.txt').write_text('1')", "record = stage.finish()")
LARGE = """\
from rlcas_utils.records import write_atomic

small = stage.cached("small", lambda: open("count.txt", "a").write("x"))
write_atomic(stage.output("large.bin"), bytes(3_000_000))"""
READY = "open('ready', 'w').close()"


@pytest.fixture
def project(tmp_path):
    made = make_project(tmp_path / "a course")
    add_notebook(made, "01_first", *FIRST)
    return made


def test_a_full_disk_gets_one_sentence_and_nothing_is_lost(project):
    """A file larger than 1 MB fails as on a full disk; with room again, finished work is not done twice."""
    add_notebook(project, "02_second", LARGE, "record = stage.finish()")
    stand_in_for_torch(project)
    failed = subprocess.run(
        [sys.executable, "-m", "rlcas_utils.run"],
        cwd=project,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)),
    )
    assert failed.returncode == 1
    assert "large.bin (2.9 MiB): File too large. What was finished before is kept." in failed.stdout
    assert "Free some space or choose another disk with --runs-dir" in failed.stdout
    assert "go on with: make course PROFILE=cpu" in failed.stdout
    folder = project / "runs" / "cpu" / "02_second"
    assert sorted(path.name for path in folder.iterdir()) == [STATE_FILE, "cache"]
    mended = run(project)
    assert mended.returncode == 0, mended.stdout
    assert "01_first: finished before" in mended.stdout
    assert (project / "count.txt").read_text() == "x"


def test_a_runner_that_cannot_write_says_so_without_a_traceback(tmp_path, capsys, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(tmp_path))

    monkeypatch.setattr(command.Path, "mkdir", refuse)
    assert command.main(["--profile", "smoke", "--runs-dir", str(tmp_path / "runs")]) == command.FAILED
    printed = capsys.readouterr().out
    assert "Read-only file system" in printed
    assert "Make the folder writable or choose another with --runs-dir" in printed


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EACCES, "Make the folder writable"),
        (errno.EIO, "Mend the cause"),
    ],
)
def test_a_failed_write_names_the_file_the_cause_and_the_remedy(tmp_path, monkeypatch, number, remedy):
    target = write_atomic(tmp_path / "a.json", "old")

    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(WriteFailed, match=rf"a\.json \(0\.0 MiB\): {os.strerror(number)}.*{remedy}"):
        write_atomic(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_truncated_record_and_an_interrupted_conversion_to_html_are_made_up(project):
    """The record is made again from finished pieces; the HTML of a finished notebook without running it."""
    add_notebook(project, "02_second", 'stage.cached("p", lambda: open("n", "a").write("x"))', *FIRST)
    assert run(project).returncode == 0
    html = project / "runs" / "cpu" / "html" / "01_first.html"
    html.rename(html.with_name(".01_first.html.1a2b3c4d.tmp"))  # what a kill in the middle leaves
    record = project / "runs" / "cpu" / "records" / "02_second.json"
    record.write_text(record.read_text()[:200])
    printed = run(project).stdout
    assert "01_first: finished before" in printed
    assert "02_second: done" in printed
    assert "01_first" in html.read_text(encoding="utf-8")
    assert json.loads(record.read_text())["outputs"]
    assert (project / "n").read_text() == "x"


def test_an_interrupted_conversion_of_a_model_leaves_no_model(tmp_path):
    """The weights' format is converted into a hidden folder that gets its name when it is complete."""
    from rlcas_utils.language.sources import _made_once

    def half(folder):
        (folder / "model.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _made_once(tmp_path / "model", half)
    assert list(tmp_path.iterdir()) == []
    made = _made_once(tmp_path / "model", lambda folder: (folder / "whole").write_text("1"))
    assert (made / "whole").is_file()


def test_a_damaged_piece_is_said_and_computed_again(tmp_path, capsys):
    folder = StageFolder(tmp_path / "01_first", "f")
    assert folder.piece("p", lambda: [1]) == [1]
    (folder.path / "cache" / "p.json").write_text("[1")
    assert folder.piece("p", lambda: [2]) == [2]
    assert "p.json is damaged" in capsys.readouterr().out


def checkpoint(folder, step):
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    save_file({"w": np.arange(100.0)}, path / "model.safetensors")
    (path / STATE).write_text("{}")
    return path


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda path: (path / STATE).unlink(), "was not written to its end"),
        (lambda path: (path / STATE).write_text("{"), f"has a damaged {STATE}"),
        (lambda path: os.truncate(path / "model.safetensors", 500), "has a damaged model.safetensors"),
        (lambda path: os.truncate(path / "model.safetensors", 0), "has a damaged model.safetensors"),
        (lambda path: (path / "optimizer.pt").write_bytes(b"PK\x03\x04"), "has a damaged optimizer.pt"),
    ],
)
def test_a_damaged_checkpoint_is_left_out_for_the_one_before(tmp_path, capsys, damage, sentence):
    good, newest = checkpoint(tmp_path, 9), checkpoint(tmp_path, 10)
    assert last_checkpoint(tmp_path) == str(newest)
    damage(newest)
    assert last_checkpoint(tmp_path) == str(good)
    assert f"checkpoint-10 {sentence}, so it is deleted" in capsys.readouterr().out
    assert not newest.exists()
    assert last_checkpoint(tmp_path / "nothing") is None


def test_a_damaged_expert_names_the_file_and_what_to_do(tmp_path):
    from rlcas_utils.sac.checkpoint import read_safetensors

    (tmp_path / "expert.safetensors").write_bytes(b"half")
    with pytest.raises(
        ValueError, match=r"expert\.safetensors is not a readable safetensors file.*Delete it"
    ):
        read_safetensors(tmp_path / "expert.safetensors")


@pytest.fixture
def made(tmp_path):
    """A finished stage that handed on one file."""
    StageFolder(tmp_path / "01_first", "f").release()
    hand_off = write_atomic(tmp_path / "01_first" / "rows.txt", "whole")
    outputs = {"01_first/rows.txt": records.sha256_file(hand_off)}
    record = dict.fromkeys(records.RECORD_KEYS, "x") | {"metrics": {}, "outputs": outputs}
    write_json(tmp_path / "records" / "01_first.json", record)
    return tmp_path


def take(run_dir, sample=None):
    return find_handoff("01_first/rows.txt", run_dir, "cpu", "02_second", sample)


def test_a_hand_off_is_checked_against_the_record_of_its_maker(made):
    assert take(made)[0].read_text() == "whole"
    (made / "01_first" / "rows.txt").write_text("who")
    with pytest.raises(MissingHandoff, match=r"changed or cut short.*make course PROFILE=cpu ONLY=01_first"):
        take(made)


def test_the_files_of_an_unfinished_stage_are_not_accepted(made):
    record = made / "records" / "01_first.json"
    record.write_text(record.read_text()[:-30])
    with pytest.raises(MissingHandoff, match="did not reach its end, so it may be half-written"):
        take(made)


def test_a_missing_sample_names_the_command(tmp_path):
    with pytest.raises(MissingHandoff, match=r"has no sample; 02_second needs it.*ONLY=01_first"):
        take(tmp_path, sample="no_such_file.jsonl")


def test_a_second_process_in_a_stages_folder_is_refused(tmp_path, monkeypatch):
    hold = (
        "import time; from pathlib import Path; from rlcas_utils.stage_folder import StageFolder\n"
        f"folder = StageFolder(Path({str(tmp_path)!r}) / '01_first', 'f')\n"
        "print('held', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "held\n"
        monkeypatch.setattr("rlcas_utils.stage_folder.WAIT_S", 0.2)
        with pytest.raises(StageBusy, match="Another process works on 01_first"):
            StageFolder(tmp_path / "01_first", "f")
    finally:
        other.kill()
        other.wait()
    first = StageFolder(tmp_path / "01_first", "f")
    assert StageFolder(tmp_path / "01_first", "f").path == first.path  # a cell that is run twice


def test_a_kernel_whose_runner_was_killed_ends_by_itself(project):
    add_notebook(project, "01_first", f"{READY}\ntime.sleep(60)\nopen('late', 'w').close()", *FIRST)
    stand_in_for_torch(project)
    runner = subprocess.Popen([sys.executable, "-m", "rlcas_utils.run"], cwd=project, env=environment())
    wait_for(project / "ready")
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    add_notebook(project, "01_first", *FIRST)
    started = time.monotonic()
    assert "01_first: done" in run(project).stdout
    assert time.monotonic() - started < 30
    assert not (project / "late").exists()


ORPHANS = """
import sys
from pathlib import Path
from rlcas_utils.sac.config import SacConfig
from rlcas_utils.sac.parallel import Job, train_runs
from rlcas_utils.sac.probe import TwoStepProbe

if __name__ == "__main__":
    sizes = dict(hidden_sizes=(8,), warmup_episodes=2, batch_size=4, buffer_capacity=100)
    short, long = (Job(SacConfig(num_episodes=n, **sizes), 0, TwoStepProbe) for n in (5, 10**6))
    train_runs({"short": short, "long": long}, Path(sys.argv[1]), 2)
"""


def test_workers_of_a_killed_notebook_end_whether_busy_or_waiting(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(ORPHANS, encoding="utf-8")
    training = subprocess.Popen([sys.executable, script, tmp_path / "runs"], env=environment())
    wait_for(tmp_path / "runs" / "short.json")
    workers = psutil.Process(training.pid).children(recursive=True)
    assert len(workers) >= 2
    training.kill()
    training.wait()
    _, left = psutil.wait_procs(workers, timeout=10)
    assert left == []


def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} never came"
        time.sleep(0.05)
