"""Every way in which a telecom episode can end, by name: what happened, is it scored, who is to blame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AGENT_STOP = "agent_stop"
CUSTOMER_STOP = "user_stop"
MAX_STEPS = "max_steps"
TOO_MANY_ERRORS = "too_many_errors"
MAX_TURNS = "max_turns"
UNUSABLE = "unusable_output"
TOKEN_BUDGET = "token_budget"
CUSTOMER_FAILED = "infrastructure_error"


@dataclass(frozen=True)
class Ending:
    """One way to end.

    Attributes:
        meaning: What happened.
        scored: True if tau2 looks at the final state. Any other episode has reward 0, whatever was repaired.
        blame: Who ended it. An episode that "nobody" is to blame for is not evaluated and moves no weight.
    """

    meaning: str
    scored: bool
    blame: Literal["agent", "customer", "nobody"]


ENDINGS: dict[str, Ending] = {
    AGENT_STOP: Ending("the agent called done", True, "agent"),
    CUSTOMER_STOP: Ending("the customer ended the call: served, transferred or fed up", True, "customer"),
    MAX_STEPS: Ending("tau2's limit of messages, tool results included", False, "agent"),
    TOO_MANY_ERRORS: Ending("tau2's limit of failed tool calls, both sides together", False, "agent"),
    MAX_TURNS: Ending("the limit of agent turns", False, "agent"),
    UNUSABLE: Ending("several agent turns in a row that could not be performed", False, "agent"),
    TOKEN_BUDGET: Ending("no room for another agent turn in the token budget", False, "agent"),
    CUSTOMER_FAILED: Ending("the customer's server failed; says nothing about the agent", False, "nobody"),
}
SCORED_ENDS = tuple(name for name, ending in ENDINGS.items() if ending.scored)


def check_ending(name: str) -> str:
    """Return the name of an ending if the table has it.

    Raises:
        ValueError: It has not; the message lists those it has.
    """
    if name not in ENDINGS:
        raise ValueError(
            f"an episode ended as {name!r}, which no table counts. Add it to ENDINGS, or use one of "
            f"{', '.join(ENDINGS)}."
        )
    return name
