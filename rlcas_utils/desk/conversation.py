"""One ticket as a conversation: the customer opens it, every later user turn is one line of facts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rlcas_utils.desk.actions import ACTIONS
from rlcas_utils.desk.adviser import Adviser, advise
from rlcas_utils.desk.episode import Episode
from rlcas_utils.desk.evaluation import episode_row
from rlcas_utils.desk.prompts import opening_messages
from rlcas_utils.desk.ticket import Ticket
from rlcas_utils.desk.world import World
from rlcas_utils.parsing import Parsed, parse_action


class DeskConversation:
    """The desk's side of an episode that a language model plays.

    Attributes:
        messages: Opening chat messages: system prompt and the customer's message.
        episode: The episode that the answers drive.
        failures: Unusable answers by reason.
        num_repaired: Answers that were used although they depart from the contract.
        answers: The model's turns as decoded.
    """

    def __init__(
        self, ticket: Ticket, *, world: World | None = None, max_steps: int = 10, adviser: Adviser = advise
    ) -> None:
        """Open an episode.

        Args:
            ticket: The ticket to handle.
            world: Database; the shared default world if None.
            max_steps: Step limit of the episode.
            adviser: Who answers `consult_llm`.
        """
        self.episode = Episode(ticket, world=world, max_steps=max_steps, adviser=adviser)
        self.messages = opening_messages(ticket.query)
        self.failures: Counter[str] = Counter()
        self.num_repaired = 0
        self.answers: list[str] = []

    def reply(self, text: str, *, truncated: bool = False) -> str | None:
        """Carry out one answer of the model.

        Args:
            text: Decoded turn without its end token.
            truncated: True if the token limit ended the turn.

        Returns:
            The line of facts for the next user turn, or None when the episode is over. An unusable answer
            costs a step and its reason is told; no action is put in its place.
        """
        self.answers.append(text)
        parsed = parse_action(text, len(ACTIONS), truncated=truncated)
        if isinstance(parsed, Parsed):
            self.num_repaired += parsed.repaired
            step = self.episode.step(parsed.action_id)
        else:
            self.failures[parsed.reason] += 1
            step = self.episode.invalid(parsed.reason)
        return None if self.episode.done else step.text

    def abandon(self, reason: str) -> None:
        """End the episode when there is no room for another turn: as if the model went on without an answer.

        Args:
            reason: Such as ``"token_budget"``.
        """
        while not self.episode.done:
            self.failures[reason] += 1
            self.episode.invalid(reason)

    def row(self, name: str, seed: int = 0) -> dict[str, Any]:
        """Summarise the finished episode.

        Args:
            name: Agent name in tables.
            seed: Sampling seed.

        Returns:
            The row of `desk.episode_row`, with `failure_reasons` (count by reason) and `repaired` beside it.
        """
        row = episode_row(self.episode, name, seed)
        return {**row, "failure_reasons": dict(self.failures), "repaired": self.num_repaired}
