"""An episode that is reported the moment it ends, with what both sides spent on it.

Customers and agents behind an API cost money, so a run that is killed or stopped by its spend cap must not
lose what it has paid for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rlcas_utils.api_usage import Usage
from rlcas_utils.telecom.conversation import TelecomConversation
from rlcas_utils.telecom.endings import CUSTOMER_FAILED


@dataclass
class KeptConversation(TelecomConversation):
    """A telecom conversation that tells when it is over.

    Args:
        on_end: Called once with this conversation when it has ended, in the thread in which it ended.

    Attributes:
        agent_usage: What an agent behind an API used; its player adds to it.
    """

    on_end: Callable[[KeptConversation], None] | None = None
    agent_usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        """Open the episode; a customer who cannot say a first word ends it at once."""
        super().__post_init__()
        self._tell()

    def reply(self, text: str, *, truncated: bool = False) -> str | None:
        """Perform one model turn; see `TelecomConversation.reply`."""
        answer = super().reply(text, truncated=truncated)
        self._tell()
        return answer

    def abandon(self, reason: str) -> None:
        """End the episode from outside; see `TelecomConversation.abandon`."""
        super().abandon(reason)
        self._tell()

    def lose(self, failure: str) -> None:
        """End the episode because the agent's provider failed: nobody's failure, and not evaluated."""
        self.session.failure = self.session.failure or failure
        self.abandon(CUSTOMER_FAILED)

    def spending(self) -> dict[str, Any]:
        """Return the usage blocks of this episode's row: `api` of the agent, `customer_api` of the customer.

        A side that asked nothing behind an API has no block.
        """
        sides = {"api": self.agent_usage, "customer_api": getattr(self.customer, "usage", None)}
        return {name: used.block() for name, used in sides.items() if used and (used.calls or used.outages)}

    def _tell(self) -> None:
        if self.done and self.on_end is not None:
            on_end, self.on_end = self.on_end, None
            on_end(self)
