"""The desk as a Gymnasium environment, id `RLCAS-v0`."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rlcas_utils.desk.actions import ACTIONS
from rlcas_utils.desk.adviser import Adviser, advise
from rlcas_utils.desk.episode import Episode, StepResult
from rlcas_utils.desk.features import OBSERVATION_SIZE, observation
from rlcas_utils.desk.rewards import SIGNAL_NAMES
from rlcas_utils.desk.tickets import load_tickets


class DeskEnv(gym.Env[NDArray[np.float32], int]):
    """A customer-service desk where facts from seven services decide how a ticket must end.

    ## Description
    Each episode is one customer's message. The agent calls services, then ends the ticket in one of five
    ways. The category of the ticket is hidden; the same category needs different endings, and only the
    services tell which.

    ## Action Space
    `Discrete(13)`: 0-6 call the order, refund, customer, auth, logistics, inventory and knowledge service; 7
    resolve, 8 request information, 9 billing, 10 technical support, 11 human agent; 12 consults an adviser
    for a fee.

    ## Observation Space
    `Box(-1, 1, (OBSERVATION_SIZE,), float32)`: hashed text of the message, identifiers written in it, facts
    revealed, services called and failed, last action, hint, step fraction (`features.SLICES`).

    ## Rewards
    The sum of 14 named signals (`rewards.SIGNALS`); `info["reward_signals"]` holds all of them at every step.

    ## Starting State
    A ticket of the split, drawn without replacement until all were seen; `options={"ticket_id": ...}` picks
    one.

    ## Episode End
    Termination: one of the five endings was chosen, right or wrong. Truncation: `max_steps` steps without an
        ending.

    ## Information
    `ticket_id`, `query`, `text` (one line for language models), `result` (JSON facts), `reward_signals`,
    `outcome`, `resolved`.

    ## Arguments
    `split`: "train", "validation" or "benchmark". `max_steps`: step limit, 10. `adviser`: who answers
        `consult_llm`; the built-in one is deterministic and needs no network.

    ## Version History
    v0: first version.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        split: str = "train",
        max_steps: int = 10,
        render_mode: str | None = None,
        adviser: Adviser = advise,
    ) -> None:
        """Create the environment; see the class docstring for the arguments.

        Raises:
            ValueError: If the render mode is unknown.
        """
        if render_mode not in (None, "ansi"):
            raise ValueError(
                f"render_mode is {render_mode!r}; the desk only speaks text. Pass None or 'ansi'."
            )
        self.split, self.max_steps, self.render_mode = split, max_steps, render_mode
        self.adviser = adviser
        self.tickets = {ticket.ticket_id: ticket for ticket in load_tickets(split)}
        self.action_space = gym.spaces.Discrete(len(ACTIONS))
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (OBSERVATION_SIZE,), np.float32)
        self.episode: Episode | None = None
        self._waiting: list[str] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start the next ticket.

        Args:
            seed: Seeds the order of tickets and starts a new pass; None continues the present pass.
            options: `{"ticket_id": ...}` picks a ticket of the split.

        Returns:
            First observation and info.

        Raises:
            KeyError: If the ticket is not in the split.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._waiting = []
        ticket = self.tickets[self._next_id(options or {})]
        self.episode = Episode(ticket, max_steps=self.max_steps, adviser=self.adviser)
        return observation(self.episode), self._info(None)

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Take one action; see `Episode.step`.

        Raises:
            RuntimeError: If `reset` was never called or the episode is over.
        """
        if self.episode is None:
            raise RuntimeError(
                "step() before reset(): there is no ticket on the desk yet. Call reset() first."
            )
        result = self.episode.step(action)
        return (
            observation(self.episode),
            result.reward,
            result.terminated,
            result.truncated,
            self._info(result),
        )

    def render(self) -> str | None:
        """Return the episode so far as text in mode `ansi`."""
        if self.render_mode is None or self.episode is None:
            return None
        return "\n".join([self.episode.query, *(step.text for step in self.episode.history)])

    def _next_id(self, options: dict[str, Any]) -> str:
        ticket_id = options.get("ticket_id")
        if ticket_id is not None and ticket_id not in self.tickets:
            raise KeyError(
                f"ticket {ticket_id!r} is not in split {self.split!r}, so it cannot be started here. "
                f"Ids run from {min(self.tickets)} to {max(self.tickets)}."
            )
        if ticket_id is not None:
            return ticket_id
        if not self._waiting:
            ids = list(self.tickets)
            self._waiting = [ids[i] for i in self.np_random.permutation(len(ids))]
        return self._waiting.pop()

    def _info(self, step: StepResult | None) -> dict[str, Any]:
        return {
            "ticket_id": self.episode.ticket.ticket_id,
            "query": self.episode.query,
            "text": step.text if step else self.episode.query,
            "result": step.result if step else {},
            "reward_signals": step.signals if step else dict.fromkeys(SIGNAL_NAMES, 0.0),
            "outcome": step.outcome if step else "running",
            "resolved": step.resolved if step else False,
        }
