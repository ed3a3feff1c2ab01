"""A probe environment whose best policy and values are known, for tests and for the notebook."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class TwoStepProbe(gymnasium.Env):
    """Read a code, ask once, then answer: a desk of three steps small enough to solve by hand.

    Observation: one-hot code (4), a bit "asked", one-hot reading (4; zero until asked). Actions 0-3 answer, 4
    asks. Asking costs 0.5 and reveals the right answer, which is independent of the code. Answering right is
    worth +2 and wrong -1, and both terminate. Six steps without an answer truncate.

    Best policy: ask, then answer: return 1.5. Guessing at once: 2/4 - 3/4 = -0.25 on average.
    """

    best_return = 1.5

    def __init__(self) -> None:
        """Set up the spaces."""
        self.observation_space = spaces.Box(0.0, 1.0, (9,), np.float32)
        self.action_space = spaces.Discrete(5)

    def reset(
        self, *, seed: int | None = None, options: dict | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Draw a code and a right answer."""
        super().reset(seed=seed)
        self.code, self.answer = (int(x) for x in self.np_random.integers(4, size=2))
        self.asked, self.num_steps = False, 0
        return self._observation(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Ask or answer."""
        self.num_steps += 1
        if action == 4:
            self.asked = True
            return self._observation(), -0.5, False, self.num_steps >= 6, {}
        return self._observation(), 2.0 if action == self.answer else -1.0, True, False, {}

    def _observation(self) -> np.ndarray:
        observation = np.zeros(9, np.float32)
        observation[self.code] = 1.0
        if self.asked:
            observation[4] = observation[5 + self.answer] = 1.0
        return observation


class StepCounter(gymnasium.Env):
    """Shows its step number, pays 1 a step, truncates at step 4: what does a collector store at the limit?"""

    def __init__(self, limit: int = 4) -> None:
        """Set up the spaces.

        Args:
            limit: Step at which the episode is truncated.
        """
        self.limit = limit
        self.observation_space = spaces.Box(0.0, float(limit), (1,), np.float32)
        self.action_space = spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start counting."""
        super().reset(seed=seed)
        self.count = 0
        return np.array([0.0], np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Count one step."""
        self.count += 1
        return np.array([self.count], np.float32), 1.0, False, self.count >= self.limit, {}
