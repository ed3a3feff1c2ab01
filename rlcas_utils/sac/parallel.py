"""Several runs side by side: one process each, one thread each, each resumable on its own."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium

from rlcas_utils.records import write_json
from rlcas_utils.sac.checkpoint import read_safetensors, write_safetensors
from rlcas_utils.sac.config import SacConfig
from rlcas_utils.sac.networks import Actor
from rlcas_utils.sac.trainer import train

POLL_S = 1.0
PROGRESS_EVERY = 25  # episodes between two notes of a child


@dataclasses.dataclass(frozen=True)
class Job:
    """One run to train.

    Attributes:
        config: Its settings.
        seed: Its seed.
        make_env: Makes its training environment; must be importable by a fresh process.
    """

    config: SacConfig
    seed: int
    make_env: Callable[[], gymnasium.Env]


def train_runs(
    jobs: Mapping[str, Job],
    folder: Path,
    num_processes: int,
    report: Callable[[str], None] = print,
) -> dict[str, dict[str, Any]]:
    """Train every job and keep everything in a folder; a second call continues from what it finds there.

    Args:
        jobs: Runs to train, by a name that is fit for a file.
        folder: Where weights, summaries and checkpoints live.
        num_processes: Runs trained at the same time.
        report: Receives about ten lines of progress.

    Returns:
        By name: curves, num_steps, num_updates and time_s. The weights are read by `load_actor`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    todo = {name: job for name, job in jobs.items() if not _summary(folder, name).exists()}
    if todo:
        # Spawned, not forked: torch and the kernel hold threads that a fork would lose.
        context = multiprocessing.get_context("spawn")
        workers = min(num_processes, len(todo))
        watch = {"initializer": _end_with, "initargs": (os.getpid(),)}
        with ProcessPoolExecutor(workers, mp_context=context, **watch) as pool:
            futures = [pool.submit(_train_one, job, folder, name) for name, job in todo.items()]
            _watch(futures, todo, folder, report)
    return {name: json.loads(_summary(folder, name).read_text(encoding="utf-8")) for name in jobs}


def load_actor(folder: Path, name: str) -> Actor:
    """Read the policy that `train_runs` left for a job.

    Args:
        folder: Folder given to `train_runs`.
        name: Name of the job.

    Returns:
        The policy.
    """
    tensors, header = read_safetensors(folder / f"{name}.safetensors")
    sizes = json.loads(header["sizes"])
    actor = Actor(sizes[0], sizes[-1], sizes[1:-1])
    actor.load_state_dict(tensors)
    return actor


def _summary(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _note(folder: Path, name: str) -> Path:
    return folder / f"{name}.progress.json"


def _end_with(parent: int) -> None:
    """End this worker, busy or waiting, soon after the notebook is gone; all it needs to go on is saved."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _train_one(job: Job, folder: Path, name: str) -> None:
    def note(num_episodes: int, curves: dict[str, list[float]]) -> None:
        if num_episodes % PROGRESS_EVERY == 0:
            recent = curves["return"][-100:]
            write_json(_note(folder, name), [num_episodes, sum(recent) / len(recent)])

    checkpoint = folder / f"{name}.checkpoint.safetensors"
    result = train(job.make_env, job.config, job.seed, note, checkpoint=checkpoint)
    header = {"sizes": json.dumps(result.actor.sizes)}
    write_safetensors(folder / f"{name}.safetensors", result.actor.state_dict(), header)
    fields = ("curves", "num_steps", "num_updates", "time_s")
    write_json(_summary(folder, name), {field: getattr(result, field) for field in fields})
    checkpoint.unlink()


def _watch(
    futures: list[Future], jobs: Mapping[str, Job], folder: Path, report: Callable[[str], None]
) -> None:
    """Print a line per tenth of the work until all children are done; a child's error surfaces at once."""
    total = sum(job.config.num_episodes for job in jobs.values())
    started, next_share, first_share = time.perf_counter(), 0.1, None
    while not all(future.done() for future in futures):
        time.sleep(POLL_S)
        for future in futures:
            if future.done():
                future.result()
        notes = {name: _read_note(_note(folder, name)) for name in jobs}
        share = sum(done for done, _ in notes.values()) / total
        if first_share is None:  # a resumed run starts above zero, and its old share took none of this time
            first_share, started = share, time.perf_counter()
        if share >= max(next_share, first_share + 0.01):
            elapsed_s = time.perf_counter() - started
            left_s = elapsed_s * (1 - share) / (share - first_share)
            returns = ", ".join(f"{name} {value:.1f}" for name, (done, value) in notes.items() if done)
            report(f"{share:4.0%}, {elapsed_s:3.0f} s, about {left_s:3.0f} s left; mean return: {returns}")
            next_share = share + 0.1
    for future in futures:
        future.result()


def _read_note(path: Path) -> tuple[int, float]:
    try:
        num_episodes, mean_return = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return 0, 0.0
    return num_episodes, mean_return
