"""Several seeds side by side: one process each, one thread each, each resumable on its own."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable
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
PROGRESS_EVERY = 50  # episodes between two notes of a child


def train_seeds(
    env_factory: Callable[[], gymnasium.Env],
    config: SacConfig,
    seeds: Iterable[int],
    folder: Path,
    num_processes: int,
    report: Callable[[str], None] = print,
) -> dict[int, dict[str, Any]]:
    """Train one policy per seed and keep everything in a folder, finished seeds included.

    Args:
        env_factory: Makes the training environment; must be importable by a fresh process.
        config: Settings shared by all seeds.
        seeds: Seeds to train.
        folder: Where weights, summaries and checkpoints live; a second call continues from it.
        num_processes: Seeds trained at the same time.
        report: Receives about ten lines of progress.

    Returns:
        By seed: curves, num_steps, num_updates and time_s. The weights are read by `load_actor`.
    """
    seeds = list(seeds)
    folder.mkdir(parents=True, exist_ok=True)
    open_seeds = [seed for seed in seeds if not _summary(folder, seed).exists()]
    if open_seeds:
        # Fresh processes instead of forks: torch and the notebook's kernel hold threads that a fork would lose.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(num_processes, len(open_seeds)), mp_context=context) as pool:
            jobs = [
                pool.submit(_train_one, env_factory, config, seed, folder, os.getpid()) for seed in open_seeds
            ]
            _watch(jobs, open_seeds, folder, config.num_episodes, report)
    return {seed: json.loads(_summary(folder, seed).read_text(encoding="utf-8")) for seed in seeds}


def load_actor(folder: Path, seed: int) -> Actor:
    """Read the policy that `train_seeds` left for a seed.

    Args:
        folder: Folder given to `train_seeds`.
        seed: The seed.

    Returns:
        The policy.
    """
    tensors, header = read_safetensors(folder / f"seed_{seed}.safetensors")
    sizes = json.loads(header["sizes"])
    actor = Actor(sizes[0], sizes[-1], sizes[1:-1])
    actor.load_state_dict(tensors)
    return actor


def _summary(folder: Path, seed: int) -> Path:
    return folder / f"seed_{seed}.json"


def _train_one(
    env_factory: Callable[[], gymnasium.Env], config: SacConfig, seed: int, folder: Path, parent: int
) -> None:
    def note(num_episodes: int, curves: dict[str, list[float]]) -> None:
        if num_episodes % PROGRESS_EVERY == 0:
            if os.getppid() != parent:
                raise SystemExit("the notebook is gone; its next run continues from the checkpoint")
            recent = curves["return"][-100:]
            write_json(folder / f"seed_{seed}.progress.json", [num_episodes, sum(recent) / len(recent)])

    checkpoint = folder / f"seed_{seed}.checkpoint.safetensors"
    result = train(env_factory, config, seed, note, checkpoint=checkpoint)
    header = {"sizes": json.dumps(result.actor.sizes)}
    write_safetensors(folder / f"seed_{seed}.safetensors", result.actor.state_dict(), header)
    names = ("curves", "num_steps", "num_updates", "time_s")
    write_json(_summary(folder, seed), {name: getattr(result, name) for name in names})
    checkpoint.unlink()


def _watch(
    jobs: list[Future], seeds: list[int], folder: Path, num_episodes: int, report: Callable[[str], None]
) -> None:
    """Print a line per tenth of the work until all children are done; a child's error surfaces at once."""
    started, next_share = time.perf_counter(), 0.1
    while not all(job.done() for job in jobs):
        time.sleep(POLL_S)
        notes = {seed: _read_note(folder / f"seed_{seed}.progress.json") for seed in seeds}
        share = sum(done for done, _ in notes.values()) / (num_episodes * len(seeds))
        if share >= next_share:
            elapsed_s = time.perf_counter() - started
            returns = ", ".join(f"seed {s}: {r:.1f}" for s, (done, r) in notes.items() if done)
            left_s = elapsed_s * (1 - share) / share
            report(
                f"{share:4.0%} after {elapsed_s:3.0f} s, about {left_s:3.0f} s left; mean return {returns}"
            )
            next_share = share + 0.1
        for job in jobs:
            if job.done():
                job.result()
    for job in jobs:
        job.result()


def _read_note(path: Path) -> tuple[int, float]:
    try:
        num_episodes, mean_return = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return 0, 0.0
    return num_episodes, mean_return
