"""kill -9 at random moments of the smoke chain, each followed by a resume; compared with an unbroken run.

    make test-kill                                           30 kills over the whole chain, about 12 minutes
    KILLS=3 KILL_ONLY=01,02,03 python -m pytest -m kill -s   a short try

One run folder is killed again and again. The moments are drawn uniformly over the unbroken run's time, so
that each stage gets its share, start-up included. A kill takes the runner, its kernel and the children of the
kernel at once, as a power cut would. It runs in a copy of the project (folder with a space), so that work
on the sources meanwhile changes no fingerprint. The summary is printed and saved as build/kill_summary.json.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from safetensors import safe_open

from rlcas_utils.config import project_root
from rlcas_utils.records import read_record, sha256_file, sha256_tree, write_json

KILLS = int(os.environ.get("KILLS", "30"))
SEED = int(os.environ.get("KILL_SEED", "0"))
ONLY = os.environ.get("KILL_ONLY", "")
SUMMARY = Path(os.environ.get("KILL_SUMMARY", project_root() / "build" / "kill_summary.json"))
COPIED = ("rlcas_utils", "notebooks", "profiles", "data", "requirements.lock", "pyproject.toml")
MACHINE_UNITS = {"s", "tokens/s", "GiB"}
PIECES = ("*/cache/*.json", "02_sac_training/runs/*.json")

pytestmark = pytest.mark.kill


class Attempt:
    """One start of the runner; its printed lines are read while it runs."""

    def __init__(self, project, runs_dir, *arguments):
        self.log = runs_dir / "printed.txt"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(project)}
        command = [sys.executable, "-m", "rlcas_utils.run", "--profile", "smoke", "--runs-dir", str(runs_dir)]
        self.started = time.monotonic()
        with self.log.open("w", encoding="utf-8") as printed:
            self.process = subprocess.Popen(
                [*command, *arguments], cwd=project, env=environment, stdout=printed, stderr=printed
            )

    def lines(self):
        return self.log.read_text(encoding="utf-8").splitlines()

    def said(self, state):
        """The stages whose line says a state, such as "done"."""
        return [line.split(":")[0] for line in self.lines() if line.partition(": ")[2].startswith(state)]

    def wait_for(self, condition):
        """Return the moment a condition holds, or None when the process ends before."""
        while not condition():
            if self.process.poll() is not None:
                return None
            time.sleep(0.02)
        return time.monotonic()

    def wait_for_stage(self, stem):
        """Wait until a stage or a later one runs."""
        return self.wait_for(lambda: any(running >= stem for running in self.said("running")))

    def ends_before(self, moment):
        return self.wait_for(lambda: time.monotonic() >= moment) is None

    def kill(self):
        """SIGKILL the whole tree; each process is stopped first, so that none starts another meanwhile."""
        tree, waiting = [], [psutil.Process(self.process.pid)]
        while waiting:
            process = waiting.pop()
            try:
                process.suspend()
                waiting += process.children()
            except psutil.NoSuchProcess:
                continue
            tree.append(process)
        for process in tree:
            process.kill()
        self.process.wait()
        psutil.wait_procs(tree, timeout=30)


def unbroken(project, runs_dir):
    """Run the chain once and return when each stage started and when all ended, in seconds from the start."""
    attempt, starts = Attempt(project, runs_dir, "--only", ONLY), {}
    while attempt.process.poll() is None:
        for stem in attempt.said("running"):
            starts.setdefault(stem, time.monotonic() - attempt.started)
        time.sleep(0.05)
    assert attempt.process.returncode == 0, "\n".join(attempt.lines())
    return starts, time.monotonic() - attempt.started


def draw_moments(starts, total):
    """Draw sorted moments as (stage or None for start-up, seconds into it)."""
    generator = random.Random(SEED)
    moments = []
    for at in sorted(generator.uniform(0.2, total) for _ in range(KILLS)):
        stem = max((s for s in starts if starts[s] <= at), key=starts.get, default=None)
        moments.append((stem, at - starts.get(stem, 0.0)))
    return moments


def torn(run_dir):
    """Files with a final name whose content does not read to its end."""
    return [path for path in run_dir.rglob("*") if path.is_file() and not _reads(path)]


def _reads(path):
    if any(part.startswith(".") for part in path.parts):
        return True
    try:
        if path.suffix in (".json", ".ipynb"):
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".jsonl":
            [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        elif path.suffix == ".safetensors":
            with safe_open(path, framework="np") as handle:
                list(handle.keys())
    except Exception:
        return False
    return True


def identity(path):
    """Which file this is: replaced or written again, it is another one."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


class Endurance:
    """Kills a run folder again and again, and keeps the books."""

    def __init__(self, project, runs_dir):
        self.project, self.runs_dir, self.run_dir = project, runs_dir, runs_dir / "smoke"
        self.finished, self.again, self.forced = set(), [], Counter()
        self.pieces, self.pieces_again, self.torn = {}, [], set()
        self.kills = []

    def kill_at(self, stem, offset_s):
        """Start, kill that many seconds into a stage, look at what lies there; start over until it is hit."""
        force = False
        while True:
            only = ("--force", "--only", stem) if force else ("--only", ONLY)
            if force:
                self._forget(stem)
            attempt = Attempt(self.project, self.runs_dir, *only)
            begun = attempt.started
            if stem is not None:
                begun = attempt.wait_for_stage(stem)
            if begun is not None and not attempt.ends_before(begun + offset_s):
                break
            # All was done before the moment came: run that stage once more from nothing, and hit it there.
            self._note(attempt)
            assert attempt.process.returncode == 0, "\n".join(attempt.lines())
            force, offset_s = True, 0.8 * offset_s if force else offset_s
            stem = stem or min(self.finished)
        attempt.kill()
        self._note(attempt)
        running = (attempt.said("running") or ["start-up"])[-1]
        self.kills.append({"stage": running, "after_s": round(time.monotonic() - attempt.started, 1)})

    def resume_to_the_end(self):
        attempt = Attempt(self.project, self.runs_dir, "--only", ONLY)
        attempt.process.wait()
        self._note(attempt)
        assert attempt.process.returncode == 0, "\n".join(attempt.lines())

    def _forget(self, stem):
        self.forced[stem] += 1
        self.finished.discard(stem)
        kept = self.pieces.items()
        self.pieces = {path: known for path, known in kept if stem not in (path.parts[0], path.stem)}

    def _note(self, attempt):
        """Compare what ran with what had been finished, and what lies there with what lay there."""
        self.again += [stem for stem in attempt.said("running") if stem in self.finished]
        self.finished |= {*attempt.said("done"), *attempt.said("finished before")}
        for path, known in self.pieces.items():
            whole = self.run_dir / path
            if not whole.is_file() or identity(whole) != known:
                self.pieces_again.append(path.as_posix())
        found = [path for pattern in PIECES for path in self.run_dir.glob(pattern)]
        found += [self.run_dir / "records" / f"{stem}.json" for stem in self.finished]
        pieces = [path for path in found if not path.name.endswith(".progress.json")]
        self.pieces = {path.relative_to(self.run_dir): identity(path) for path in pieces}
        self.torn |= {path.relative_to(self.run_dir).as_posix() for path in torn(self.run_dir)}


def compare(ours, theirs):
    """Count metrics and files handed on of two runs, and name those that differ."""
    counts, different = Counter(), []
    for path in sorted((theirs / "records").glob("*.json")):
        a, b = (read_record(folder / "records" / path.name) for folder in (ours, theirs))
        for kind, left, right in (
            ("metrics", steady(a), steady(b)),
            ("outputs", handed_on(a, ours), handed_on(b, theirs)),
        ):
            counts[kind] += len(right)
            different += [f"{path.stem} {n}" for n in left | right if left.get(n) != right.get(n)]
    return counts, different


def steady(record):
    """The metrics that do not measure the machine."""
    return {name: m for name, m in record["metrics"].items() if m["unit"] not in MACHINE_UNITS}


def handed_on(record, run_dir):
    """The hash of every file handed on. A model card states seconds, so it is left out."""
    for name, expected in record["outputs"].items():
        assert sha256_tree(run_dir / name) == expected, name
    outputs = [run_dir / name for name in record["outputs"]]
    files = [f for output in outputs for f in ([output] if output.is_file() else output.rglob("*"))]
    return {
        file.relative_to(run_dir).as_posix(): sha256_file(file)
        for file in files
        if file.is_file() and file.name != "README.md"
    }


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kill test")
    project = folder / "the course"
    for name in COPIED:
        source = project_root() / name
        if source.is_dir():
            shutil.copytree(source, project / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, project)
    runs = [folder / name for name in ("unbroken", "killed")]
    for path in runs:
        path.mkdir()
    starts, unbroken_s = unbroken(project, runs[0])
    began, endurance = time.monotonic(), Endurance(project, runs[1])
    for stem, offset_s in draw_moments(starts, unbroken_s):
        endurance.kill_at(stem, offset_s)
    endurance.resume_to_the_end()
    counts, different = compare(endurance.run_dir, runs[0] / "smoke")
    made = {
        "kills": len(endurance.kills),
        "seed": SEED,
        "threads": 1,
        "unbroken_s": round(unbroken_s),
        "killed_s": round(time.monotonic() - began),
        "kills_by_stage": dict(sorted(Counter(kill["stage"] for kill in endurance.kills).items())),
        "stages_started_over_to_be_hit": dict(endurance.forced),
        "finished_stages_run_again": endurance.again,
        "finished_pieces_made_again": endurance.pieces_again,
        "pieces_at_the_end": len(endurance.pieces),
        "half_written_files_seen": sorted(endurance.torn),
        "half_written_files_at_the_end": [p.name for p in torn(endurance.run_dir)],
        "metrics_compared": counts["metrics"],
        "files_handed_on_compared": counts["outputs"],
        "different": different,
        "each_kill": endurance.kills,
    }
    write_json(SUMMARY, made)
    print("\n" + json.dumps({k: v for k, v in made.items() if k != "each_kill"}, indent=2))
    return made


def test_every_kill_was_followed_by_a_resume_and_none_was_missed(summary):
    assert summary["kills"] == KILLS
    if not ONLY and KILLS >= 30:
        assert len(summary["kills_by_stage"]) >= 4


def test_metrics_and_hand_offs_equal_those_of_an_unbroken_run(summary):
    assert summary["metrics_compared"] > 10
    assert summary["different"] == []


def test_nothing_that_was_finished_is_computed_again(summary):
    assert summary["finished_stages_run_again"] == []
    assert summary["finished_pieces_made_again"] == []


def test_no_half_written_file_is_accepted(summary):
    assert summary["half_written_files_at_the_end"] == []
