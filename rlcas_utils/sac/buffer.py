"""Replay buffer: preallocated arrays, oldest transition overwritten first, only true endings marked."""

# ruff: noqa: N815 (shape suffixes name the axes of a tensor)
from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Batch(NamedTuple):
    """Transitions drawn together; O observation length, B batch."""

    observation_BO: Tensor
    action_B: Tensor
    reward_B: Tensor
    next_observation_BO: Tensor
    terminated_B: Tensor


class ReplayBuffer:
    """Fixed-size memory of transitions.

    A truncation is deliberately not stored: the value of a state does not end because the clock did, so
    the learner must not be able to see it.
    """

    def __init__(self, capacity: int, observation_size: int) -> None:
        """Allocate the arrays.

        Args:
            capacity: Most transitions kept.
            observation_size: Length O of an observation.

        Raises:
            ValueError: If the capacity is not positive.
        """
        if capacity < 1:
            raise ValueError(f"capacity {capacity} holds no transition. Set BUFFER_CAPACITY to 1 or more.")
        self.capacity = capacity
        self.num_added = 0
        self.arrays = {
            "observation": np.zeros((capacity, observation_size), np.float32),
            "action": np.zeros(capacity, np.int64),
            "reward": np.zeros(capacity, np.float32),
            "next_observation": np.zeros((capacity, observation_size), np.float32),
            "terminated": np.zeros(capacity, np.float32),
        }

    def __len__(self) -> int:
        """Number of transitions held."""
        return min(self.num_added, self.capacity)

    def add(
        self,
        observation: np.ndarray,
        action: int,
        reward: float,
        next_observation: np.ndarray,
        terminated: bool,
    ) -> None:
        """Store one transition.

        Args:
            observation: Observation the action was taken in, shape (O,).
            action: Action id.
            reward: Reward of the step.
            next_observation: Observation the step returned, also at the last step, shape (O,).
            terminated: True only if the episode ended by itself; False at a time limit.
        """
        row = self.num_added % self.capacity
        values = (observation, action, reward, next_observation, float(terminated))
        for array, value in zip(self.arrays.values(), values, strict=True):
            array[row] = value
        self.num_added += 1

    def sample(self, batch_size: int, rng: np.random.Generator) -> Batch:
        """Draw transitions uniformly with replacement.

        Args:
            batch_size: Number of transitions B.
            rng: Source of randomness.

        Returns:
            The batch as tensors.
        """
        rows = rng.integers(0, len(self), size=batch_size)
        return Batch(*(torch.from_numpy(array[rows]) for array in self.arrays.values()))
