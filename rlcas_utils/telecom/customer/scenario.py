"""What the customer knows about themselves: the task's user scenario, and nothing else of the task."""

import re
from dataclasses import dataclass
from typing import Any

_IDENTITY = re.compile(r"You are (.+?) with phone number ([\d-]+)")
_LOCATION = re.compile(r"You are currently (.+?)\.")
_REFUEL = re.compile(r"willing to refuel ([\d.]+) GB")


@dataclass(frozen=True)
class Scenario:
    """Facts, wishes and temper of one customer.

    Attributes:
        name: Full name, empty if the scenario gives none.
        phone: Phone number, empty if the scenario gives none.
        location: "abroad in France" and the like; empty if not given.
        goal: "service", "speed" or "mms": what must work before the customer is content.
        refuel_gb: Amount of data the customer would buy, as written; empty if none.
        keeps_plan: True if the customer refuses another plan.
        pays: True if the customer is ready to pay an overdue bill.
        persona: "none", "easy" (41 years) or "hard" (64 years).
        fingerprint: The scenario's text, for seeding.
    """

    name: str
    phone: str
    location: str
    goal: str
    refuel_gb: str
    keeps_plan: bool
    pays: bool
    persona: str
    fingerprint: str

    @property
    def abroad(self) -> bool:
        """True if the scenario places the customer outside the home country."""
        return "abroad" in self.location


def _goal(reason: str, wishes: str) -> str:
    if "speed test" in wishes:
        return "speed"
    return "mms" if "MMS" in reason else "service"


def _persona(text: str) -> str:
    return "hard" if "64 years" in text else "easy" if "41-year" in text else "none"


def read_scenario(user_scenario: Any) -> Scenario:
    """Read a tau2 user scenario (or its instructions alone).

    Args:
        user_scenario: `task.user_scenario`; its `instructions` need `reason_for_call`, `known_info` and
            `task_instructions`.

    Raises:
        TypeError: The scenario is free text, which this customer cannot act on.
    """
    instructions = getattr(user_scenario, "instructions", user_scenario)
    if not hasattr(instructions, "task_instructions"):
        raise TypeError(
            f"the user scenario is a {type(instructions).__name__}, not structured instructions, so the "
            f"scripted "
            "customer would not know its goal. Pass task.user_scenario of a telecom task."
        )
    known, wishes = instructions.known_info or "", instructions.task_instructions or ""
    identity, location, refuel = _IDENTITY.search(known), _LOCATION.search(known), _REFUEL.search(wishes)
    persona = getattr(user_scenario, "persona", None) or ""
    return Scenario(
        name=identity.group(1) if identity else "",
        phone=identity.group(2) if identity else "",
        location=location.group(1) if location else "",
        goal=_goal(instructions.reason_for_call, wishes),
        refuel_gb=refuel.group(1) if refuel else "",
        keeps_plan="do not want to change your mobile data plan" in wishes,
        pays="asks you to pay a bill, you accept" in wishes,
        persona=_persona(persona),
        fingerprint="|".join((instructions.reason_for_call, known, wishes, persona)),
    )
