"""What the customer keeps in mind during one conversation."""

import random
from collections import deque
from dataclasses import dataclass, field

from rlcas_utils.telecom.customer.phone import Phone
from rlcas_utils.telecom.customer.requests import Request
from rlcas_utils.telecom.customer.scenario import Scenario


@dataclass
class Memory:
    """The customer's state during one conversation.

    Attributes:
        scenario: Who the customer is and what they want.
        rng: Source of wording.
        phone: What the device has shown.
        queue: Steps still to do for the agent's last message.
        current: The step being done, and `running` the tool run for it.
        report: Results so far; `remarks` and `replies` are said after them.
        announced: The customer said that everything works.
        changes: Device actions that changed something.
        lost: Messages in a row that asked for nothing; `closings` goodbyes while it does not work.
    """

    scenario: Scenario
    rng: random.Random
    phone: Phone
    queue: deque[Request] = field(default_factory=deque)
    current: Request | None = None
    running: str = ""
    report: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    greeted: bool = False
    identified: bool = False
    announced: bool = False
    frustrated: bool = False
    misheard: bool = False
    changes: int = 0
    lost: int = 0
    closings: int = 0
    calls: int = 0
