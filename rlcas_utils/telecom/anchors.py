"""A conversation that notes the state before each of its model's turns, so that turns can be compared."""

from __future__ import annotations

from dataclasses import dataclass, field

from rlcas_utils.telecom.conversation import TelecomConversation


@dataclass
class AnchoredConversation(TelecomConversation):
    """A telecom conversation for `grpo.StepCredit`.

    A state is the company's database and the customer's phone together. What was said is no part of it: with
    words in it hardly two turns of different episodes would ever be in the same state.

    Attributes:
        anchors: Hash of the state before each model turn.
    """

    anchors: list[str] = field(default_factory=list)

    def reply(self, text: str, *, truncated: bool = False) -> str | None:
        """Perform one model turn; see `TelecomConversation.reply`."""
        world = self.session.environment
        self.anchors.append(f"{world.get_db_hash()}{world.get_user_db_hash()}")
        return super().reply(text, truncated=truncated)
