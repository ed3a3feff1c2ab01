"""Settings of one SAC-Discrete run, validated before any step is taken."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class SacConfig:
    """Everything that decides a run, apart from its environment and seed.

    Attributes:
        num_episodes: Training episodes.
        hidden_sizes: Widths of the hidden layers of actor and critics.
        gamma: Discount per step.
        tau: Step of the target critics towards the critics, per update.
        actor_lr: Learning rate of the policy.
        critic_lr: Learning rate of the critics.
        alpha_lr: Learning rate of log alpha.
        batch_size: Transitions per update.
        buffer_capacity: Most transitions remembered.
        warmup_episodes: Episodes of uniformly random actions before the first update.
        return_share: Share of the episodes that go back to a failure (see `archive`), while there are any.
        updates_per_step: Gradient updates per environment step.
        target_entropy_fraction: Wanted policy entropy at the end, as a share of ln A.
        initial_entropy_fraction: The same at the start; the target moves to the end value in a line.
        anneal_share: Share of the episodes after which the target entropy has reached its end value.
        final_lr_share: Learning rates of actor and critics fall in a line over the second half to this share.
        initial_alpha: Temperature at the start.
        alpha_range: Smallest and largest temperature.
        weight_decay: Decoupled weight decay of both networks (AdamW).
    """

    num_episodes: int = 3000
    hidden_sizes: tuple[int, ...] = (256, 256)
    gamma: float = 0.99
    tau: float = 0.01
    actor_lr: float = 3e-4
    critic_lr: float = 1e-3
    alpha_lr: float = 1e-3
    batch_size: int = 64
    buffer_capacity: int = 50_000
    warmup_episodes: int = 100
    return_share: float = 0.5
    updates_per_step: float = 1.0
    target_entropy_fraction: float = 0.05
    initial_entropy_fraction: float = 0.4
    anneal_share: float = 0.8
    final_lr_share: float = 0.01
    initial_alpha: float = 1.0
    alpha_range: tuple[float, float] = (1e-3, 10.0)
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        """Refuse values that would train on nothing or diverge."""
        for name in ("num_episodes", "batch_size", "buffer_capacity"):
            self._require(name, getattr(self, name) >= 1, "must be at least 1")
        for name in ("gamma", "tau", "anneal_share", "final_lr_share"):
            self._require(name, 0.0 < getattr(self, name) <= 1.0, "must lie in (0, 1]")
        for name in ("actor_lr", "critic_lr", "alpha_lr", "updates_per_step"):
            self._require(name, getattr(self, name) > 0.0, "must be positive")
        low, high = self.alpha_range
        self._require(
            "initial_alpha", 0.0 < low <= self.initial_alpha <= high, f"must lie in [{low}, {high}]"
        )
        self._require("return_share", 0.0 <= self.return_share < 1.0, "must lie in [0, 1)")
        self._require("warmup_episodes", self.warmup_episodes >= 1, "must be at least 1")

    def _require(self, name: str, condition: bool, rule: str) -> None:
        if not condition:
            raise ValueError(
                f"{name} is {getattr(self, name)!r} and {rule}; nothing was trained. Set {name}."
            )

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON types, for fingerprints and checkpoints."""
        plain = dataclasses.asdict(self)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}
