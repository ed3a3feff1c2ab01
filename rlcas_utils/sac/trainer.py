"""The training loop: collect an episode, learn from the buffer, write a checkpoint, repeat.

Design notes. Every episode is reset with a seed made of (run seed, episode number), so the environment
holds no hidden state between episodes and a resumed run is bit for bit the unbroken one. Where the
environment names its tickets, a share of the episodes goes back to a failed one (see `archive`). Networks
here are so small that more than one thread slows them down; seeds run side by side in processes instead.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch

from rlcas_utils.sac.archive import Archive
from rlcas_utils.sac.buffer import ReplayBuffer
from rlcas_utils.sac.checkpoint import load_checkpoint, save_checkpoint
from rlcas_utils.sac.config import SacConfig
from rlcas_utils.sac.learner import SacLearner
from rlcas_utils.sac.networks import Actor

CURVES = ("return", "steps", "entropy", "alpha", "terminated", "returned")
ARCHIVED = ("entries", "endings", "num_noted")  # state of the archive that a checkpoint keeps


@dataclasses.dataclass
class SacResult:
    """What one run leaves behind.

    Attributes:
        actor: The trained policy.
        learner: The learner, critics included.
        buffer: Transitions remembered at the end.
        curves: Per training episode: return, steps, mean policy entropy (nats), alpha, terminated (0 or 1),
            returned (1: the episode went back to a failure).
        seed: Seed of the run.
        num_steps: Environment steps taken.
        num_updates: Gradient updates taken.
        time_s: Seconds of training, summed over resumed parts.
    """

    actor: Actor
    learner: SacLearner
    buffer: ReplayBuffer
    curves: dict[str, list[float]]
    seed: int
    num_steps: int
    num_updates: int
    time_s: float


@contextmanager
def single_thread() -> Iterator[None]:
    """Run torch on one thread inside the block and give the old number back afterwards."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)


def train(
    env_factory: Callable[[], gymnasium.Env],
    config: SacConfig,
    seed: int,
    progress: Callable[[int, dict[str, list[float]]], None] | None = None,
    *,
    checkpoint: Path | None = None,
    checkpoint_every: int = 500,
) -> SacResult:
    """Train SAC-Discrete on an environment.

    Args:
        env_factory: Makes the environment: a float32 vector observation and discrete actions.
        config: Settings of the run.
        seed: Seed of weights, exploration, sampling and episodes.
        progress: Called after every episode with the number done and the curves so far.
        checkpoint: File to continue from if it exists, and to write to; None keeps nothing.
        checkpoint_every: Episodes between two checkpoints.

    Returns:
        The trained policy and its curves.

    Raises:
        ValueError: If a checkpoint was made with other settings, or the target entropy is senseless.
    """
    with single_thread():
        run = _Run(env_factory(), config, seed)
        if checkpoint is not None and checkpoint.exists():
            run.restore(checkpoint)
        started, time_before = time.perf_counter(), run.time_s
        while run.num_episodes < config.num_episodes:
            run.episode()
            run.time_s = time_before + time.perf_counter() - started
            due = run.num_episodes % checkpoint_every == 0 or run.num_episodes == config.num_episodes
            if checkpoint is not None and due:
                run.save(checkpoint)
            if progress is not None:
                progress(run.num_episodes, run.curves)
        run.env.close()
    return SacResult(
        actor=run.learner.actor,
        learner=run.learner,
        buffer=run.buffer,
        curves=run.curves,
        seed=seed,
        num_steps=run.num_steps,
        num_updates=run.num_updates,
        time_s=run.time_s,
    )


class _Run:
    """State of a run between two episodes."""

    def __init__(self, env: gymnasium.Env, config: SacConfig, seed: int) -> None:
        self.env, self.config, self.seed = env, config, seed
        observation_size = int(env.observation_space.shape[0])
        self.num_actions = int(env.action_space.n)
        self.learner = SacLearner(observation_size, self.num_actions, config, seed)
        self.buffer = ReplayBuffer(config.buffer_capacity, observation_size)
        self.rng = np.random.default_rng([seed, 0])
        self.archive = Archive(config.return_share)
        self.curves: dict[str, list[float]] = {name: [] for name in CURVES}
        self.num_steps = self.num_updates = 0
        self.updates_due = self.time_s = 0.0

    @property
    def num_episodes(self) -> int:
        """Episodes finished."""
        return len(self.curves["return"])

    def episode(self) -> None:
        """Play one episode with the current policy, or return to a failure, and learn along the way."""
        warming_up = self.num_episodes < self.config.warmup_episodes
        self.learner.schedule(self.num_episodes / self.config.num_episodes)
        entry = None if warming_up else self.archive.draw(self.rng)
        way_back, untried = (entry["prefix"], entry["untried"]) if entry else ([], [])
        observation, _ = self.env.reset(
            seed=_episode_seed(self.seed, self.num_episodes),
            options={"ticket_id": entry["ticket_id"]} if entry else None,
        )
        actions, rewards, entropies, terminated, truncated = [], [], [], False, False
        while not (terminated or truncated):
            log_pi_A = self.learner.log_policy(observation)
            entropies.append(-float((np.exp(log_pi_A) * log_pi_A).sum()))
            if len(actions) < len(way_back):
                actions.append(way_back[len(actions)])
            else:
                actions.append(self._choose(log_pi_A, warming_up, untried))
            next_observation, reward, terminated, truncated, info = self.env.step(actions[-1])
            self.buffer.add(observation, actions[-1], float(reward), next_observation, terminated)
            observation = next_observation
            rewards.append(float(reward))
            if not warming_up:
                self._learn()
        self.archive.note(
            info.get("ticket_id"),
            actions,
            rewards,
            terminated=terminated,
            resolved=bool(info.get("resolved", terminated)),
            entry=entry,
        )
        self._log(sum(rewards), len(actions), float(np.mean(entropies)), terminated, entry is not None)

    def _log(self, total: float, num_steps: int, entropy: float, terminated: bool, returned: bool) -> None:
        self.num_steps += num_steps
        row = (total, num_steps, entropy, self.learner.alpha, float(terminated), float(returned))
        for name, value in zip(CURVES, row, strict=True):
            self.curves[name].append(value)

    def _choose(self, log_pi_A: np.ndarray, warming_up: bool, among: list[int]) -> int:
        if warming_up:
            return int(self.rng.integers(self.num_actions))
        # Adding Gumbel noise and taking the largest draws exactly from the policy.
        noisy_A = log_pi_A + self.rng.gumbel(size=self.num_actions)
        return max(among or range(self.num_actions), key=lambda action: noisy_A[action])

    def _learn(self) -> None:
        config = self.config
        self.updates_due += config.updates_per_step
        while self.updates_due >= 1.0:
            self.learner.update(self.buffer.sample(config.batch_size, self.rng))
            self.updates_due -= 1.0
            self.num_updates += 1

    def save(self, path: Path) -> None:
        """Write the checkpoint."""
        counters = ("seed", "curves", "num_steps", "num_updates", "updates_due", "time_s")
        progress = {name: getattr(self, name) for name in counters}
        progress |= {name: getattr(self.archive, name) for name in ARCHIVED}
        save_checkpoint(path, self.learner, self.buffer, self.rng, progress)

    def restore(self, path: Path) -> None:
        """Continue from a checkpoint of the same seed."""
        progress: dict[str, Any] = load_checkpoint(path, self.learner, self.buffer, self.rng)
        if progress["seed"] != self.seed:
            raise ValueError(
                f"{path.name} belongs to seed {progress['seed']}, this run is seed {self.seed}; "
                "continuing would mix two runs. Delete it or point CHECKPOINT elsewhere."
            )
        for name in ARCHIVED:
            setattr(self.archive, name, progress.pop(name))
        for name, value in progress.items():
            setattr(self, name, value)


def _episode_seed(seed: int, episode: int) -> int:
    return int(np.random.SeedSequence([seed, 1, episode]).generate_state(1)[0])


@torch.no_grad()
def greedy_return(env: gymnasium.Env, actor: Actor, num_episodes: int, seed: int = 0) -> float:
    """Mean return of the argmax policy.

    Args:
        env: Environment to play.
        actor: Trained policy.
        num_episodes: Episodes to average over.
        seed: Seed of the episodes.

    Returns:
        Mean undiscounted return.
    """
    total = 0.0
    for episode in range(num_episodes):
        observation, _ = env.reset(seed=_episode_seed(seed, episode))
        done = False
        while not done:
            action = int(actor(torch.from_numpy(observation).unsqueeze(0)).argmax())
            observation, reward, terminated, truncated, _ = env.step(action)
            total, done = total + float(reward), terminated or truncated
    return total / num_episodes
