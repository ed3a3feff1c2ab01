"""The expert's memory, written out as the thought that goes with each action.

The thought is the whole memory, apart from the identifiers of customer, line and plan (the same in every
task): together with the last answer it decides the next action. A test holds the expert to that, because a
small model that imitates it has to live by it.
"""

from dataclasses import dataclass, field
from typing import Any

from rlcas_utils.telecom.expert import reading

TODAY = "2025-02-25"  # the date the telecom policy gives the agent
TODO_ORDER = (
    "airplane",
    "sim",
    "data",
    "abroad",
    "roaming",
    "usage",
    "bar",
    "saver",
    "mode",
    "vpn",
    "storage",
    "sms",
)


@dataclass
class Notes:
    """What the expert keeps in mind.

    Attributes:
        issue: "mms", "data" or "service"; empty before the customer has spoken.
        customer: Customer record; empty before it was read.
        line: Record of the affected line; empty before it was read.
        todo: Repairs and checks known to be open.
        done: Steps that must not be repeated later.
    """

    issue: str = ""
    customer: dict[str, Any] = field(default_factory=dict)
    line: dict[str, Any] = field(default_factory=dict)
    todo: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)

    @property
    def last_bill(self) -> str:
        """The bill last put on the customer's record."""
        return (self.customer.get("bill_ids") or [""])[-1]

    @property
    def suspended(self) -> bool:
        """True while the line is suspended."""
        return self.line.get("status") == "Suspended"

    @property
    def expired(self) -> bool:
        """True if the line's contract has ended."""
        end = self.line.get("contract_end_date") or ""
        return bool(end) and end[:10] < TODAY

    def see_bar(self, text: str) -> None:
        """Take in a status bar: what still slows data down, or keeps MMS from going out."""
        if not reading.shows_data(text) or "bar" not in self.todo | self.done:
            return
        self.todo.discard("bar")
        self.done.add("bar")
        slow = ("2G",) if self.issue == "mms" else ("2G", "3G")
        found = {
            "mode": reading.generation(text) in slow,
            "saver": self.issue == "data" and reading.saver_on(text),
            "vpn": self.issue == "data" and reading.vpn_on(text),
        }
        self.todo = (self.todo - set(found)) | {name for name, present in found.items() if present}

    def see_generation(self, network_status: str) -> None:
        """For MMS the network generation is all the status bar would tell; the network status has it too."""
        if self.issue == "mms" and reading.generation(network_status):
            self.todo.discard("bar")
            self.done.add("bar")
            self.todo |= {"mode"} if reading.generation(network_status) == "2G" else set()

    def _line_words(self) -> str:
        if not self.line:
            return f"bill {self.last_bill}" if self.customer else ""
        if self.expired and self.suspended:
            return "line expired"
        if self.suspended:
            return f"line suspended, bill {self.last_bill}"
        roaming = self.issue != "service" and not self.line.get("roaming_enabled")
        return "line no roaming" if roaming else "line ok"

    def thought(self, step: str) -> str:
        """The memory and the step decided on, e.g. ``mms | line ok | todo sim, data | next: reseat sim``."""
        todo = ", ".join(name for name in TODO_ORDER if name in self.todo)
        parts = [
            self.issue,
            self._line_words(),
            f"todo {todo}" if todo else "",
            ", ".join(sorted(self.done - {"bar"})),
        ]
        return " | ".join([part for part in parts if part] + [f"next: {step}"])
