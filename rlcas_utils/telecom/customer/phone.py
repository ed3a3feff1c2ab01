"""What the customer has learned about their own phone from the results of their own tools."""

import re
from dataclasses import dataclass, field

_ON = {"on": "on", "yes": "on", "off": "off", "no": "off"}
_FACTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (setting, re.compile(pattern, re.I))
    for setting, pattern in (
        ("airplane", r"Airplane Mode(?: is now|:) (ON|OFF)"),
        ("mobile_data", r"Mobile Data(?: is now| Enabled:) (ON|OFF|Yes|No)"),
        ("roaming", r"Data Roaming(?: is now| Enabled:) (ON|OFF|Yes|No)"),
        ("data_saver", r"Data Saver mode is (?:now )?(ON|OFF)"),
        ("wifi_calling", r"Wi-Fi Calling is (?:now|currently turned) (ON|OFF)"),
        ("wifi", r"Wi-Fi (?:is (?:now |turned )?|Radio: )(ON|OFF)"),
    )
)
_BAR = re.compile(r"Status Bar: (.*)")
GOAL_TOOLS: dict[str, str] = {"speed": "run_speed_test", "mms": "can_send_mms", "service": "check_status_bar"}
"""The tool that shows whether the customer's goal is reached."""


@dataclass
class Phone:
    """Known positions of settings, and whether the goal is reached.

    Attributes:
        goal: "service", "speed" or "mms".
        known: Setting -> "on" or "off", as last seen.
        goal_met: None until a result has shown it.
        payment_request: True once a request to pay was seen and not paid yet.
    """

    goal: str
    known: dict[str, str] = field(default_factory=dict)
    goal_met: bool | None = None
    payment_request: bool = False

    def learn(self, content: str) -> None:
        """Take in the text of a tool result."""
        for setting, pattern in _FACTS:
            match = pattern.search(content)
            if match:
                self.known[setting] = _ON[match.group(1).lower()]
        bar = _BAR.search(content)
        if bar:
            self._learn_bar(bar.group(1))
        self._learn_goal(content)
        if "payment request" in content.lower():
            self.payment_request = content.startswith("You have a payment request")
        if content.startswith("Payment of"):
            self.payment_request = False

    def _learn_bar(self, bar: str) -> None:
        self.known["airplane"] = "on" if "Airplane Mode" in bar else "off"
        if "Data Enabled" in bar:
            self.known["data_saver"] = "on" if "Data Saver" in bar else "off"
        if self.goal == "service":
            self.goal_met = "No Signal" not in bar and "Airplane Mode" not in bar

    def _learn_goal(self, content: str) -> None:
        if self.goal == "service" and "Cellular Connection:" in content:
            self.goal_met = "Cellular Connection: connected" in content
        if self.goal == "speed" and content.startswith("Speed "):
            self.goal_met = "(Excellent)" in content
        if self.goal == "mms" and "send MMS messages" in content:
            self.goal_met = "can send MMS" in content
