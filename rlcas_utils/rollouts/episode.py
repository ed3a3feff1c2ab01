"""What goes into an episode (a conversation) and what comes out of it (a rollout of token ids)."""

import random
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from rlcas_utils.rollouts.sampling import Sampling

Ending = Literal["done", "token_budget"]


class Conversation(Protocol):
    """The environment's side of one episode."""

    messages: list[dict[str, str]]

    def reply(self, text: str, *, truncated: bool = False) -> str | None:
        """Takes the model's turn, returns the next user text, or None when the episode is over."""
        ...

    def abandon(self, reason: str) -> None:
        """Told when the token budget leaves no room for another turn."""
        ...


@dataclass(frozen=True)
class Rollout:
    """One finished episode, as the token ids that were really sampled.

    Attributes:
        prompt_ids: The opening prompt.
        completion_ids: All that followed: the model's turns and the environment's.
        logprobs: Log-probability of each sampled token; 0 on environment tokens.
        env_mask: 1 on the model's tokens, 0 on the environment's (what the loss must not touch).
        num_turns: Model turns.
        end: "done", or "token_budget" when no further turn fitted.
    """

    prompt_ids: list[int]
    completion_ids: list[int]
    logprobs: list[float]
    env_mask: list[int]
    num_turns: int
    end: Ending


class Engine(Protocol):
    """Plays conversations with a model: `run_episodes` is one, a vLLM engine is another."""

    def __call__(
        self, model: Any, tokenizer: Any, conversations: Sequence[Conversation], sampling: Sampling
    ) -> list[Rollout]:
        """Plays every conversation to its end; one rollout each, in their order."""
        ...


@dataclass(eq=False)
class Episode:
    """A running episode. `pending` are the ids that the cache does not hold yet."""

    index: int
    conversation: Conversation
    prompt_ids: list[int]
    stream: random.Random
    pending: list[int] = field(default_factory=list)
    completion_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    env_mask: list[int] = field(default_factory=list)
    num_turns: int = 0
    turn_start: int = 0
    slot: int = -1
    reply: Future[str | None] | None = None

    def rollout(self, end: Ending) -> Rollout:
        return Rollout(
            self.prompt_ids, self.completion_ids, self.logprobs, self.env_mask, self.num_turns, end
        )
