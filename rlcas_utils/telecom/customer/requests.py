"""What the customer understood: a request to do something on the phone, and the context clauses share."""

from dataclasses import dataclass

from rlcas_utils.telecom.customer import device


@dataclass(frozen=True)
class Request:
    """One thing the agent asks for.

    Attributes:
        kind: "call" (run a device tool), "switch" (bring a setting to a position) or "ask" (the agent left
            out a detail that the customer has to ask back for).
        target: Tool name, setting name, or the missing detail.
        details: Tool arguments as (name, value) pairs; for a switch the wanted position.
        condition: "abroad" when the agent asked only for the case that the customer is abroad.
    """

    kind: str
    target: str
    details: tuple[tuple[str, str], ...] = ()
    condition: str = ""

    def __str__(self) -> str:
        """Compact form, e.g. ``toggle_data``, ``airplane=off``, ``grant_app_permission:messaging:sms``."""
        values = [value for _, value in self.details]
        text = f"{self.target}={values[0]}" if self.kind == "switch" else ":".join([self.target, *values])
        return f"?{text}" if self.kind == "ask" else text

    @property
    def reads(self) -> bool:
        """True if it changes nothing on the phone."""
        return self.kind == "ask" or self.target in device.READING_TOOLS


@dataclass
class Context:
    """What the clauses read so far leave behind for the next one."""

    text: str
    last: str = ""
    last_switch: str = ""
    carry: str = ""
    opened: str = ""
    acted: bool = False
    condition: tuple[str, int] = ("", -1)
