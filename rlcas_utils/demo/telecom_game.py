"""A telecom call as a visitor sees it: an agent, and the scripted customer or the visitor."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from rlcas_utils.demo.limits import MAX_MESSAGE, Refused, Turn, cleaned
from rlcas_utils.demo.roster import TelecomAgent
from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.conversation import TelecomConversation
from rlcas_utils.telecom.customer import phrases
from rlcas_utils.telecom.customer.device import DEVICE_TOOLS, READING_TOOLS
from rlcas_utils.telecom.customer.scenario import read_scenario
from rlcas_utils.telecom.customers import scripted_customer
from rlcas_utils.telecom.human import ACCEPT_TRANSFER, HANG_UP, HumanConversation, human_conversation
from rlcas_utils.telecom.prompt import render_call
from rlcas_utils.telecom.verdict import verdict
from rlcas_utils.viewer import telecom as view

SEED = 0
APPS = ("messaging", "browser")
PERMISSIONS = ("sms", "storage", "phone", "network")
MODES = ("4g_5g_preferred", "4g_only", "3g_only", "2g_only")
LOOKING = tuple(tool for tool in DEVICE_TOOLS if tool in READING_TOOLS)
CHANGING = tuple(tool for tool in DEVICE_TOOLS if tool not in READING_TOOLS)
_ISSUES = {
    "mms_issue": "picture messages fail",
    "mobile_data_issue": "mobile data fails",
    "service_issue": "no service",
}


def task_choices() -> list[tuple[str, str]]:
    """Return (text, task id) of the 40 test tasks, easy ones first; the faults are not told."""
    named = [(tau2.parse_task_id(task.id), task.id) for task in tau2.tasks("test")]
    named.sort(key=lambda entry: (len(entry[0].faults), entry[1]))
    return [
        (f"{number:02d} {_ISSUES[name.issue]}, {len(name.faults)} faults", task_id)
        for number, (name, task_id) in enumerate(named, start=1)
    ]


def tool_arguments(tool: str, app: str, permission: str, mode: str) -> dict[str, Any]:
    """Return the arguments of a phone tool from what the visitor set beside the buttons.

    Args:
        tool: One of the 30.
        app: App that is looked at or granted something.
        permission: What it is granted.
        mode: Network mode.

    Raises:
        Refused: A value that the lists do not have.
    """
    lists = ((app, APPS), (permission, PERMISSIONS), (mode, MODES))
    if any(value not in allowed for value, allowed in lists):
        raise Refused("Choose app, permission and network mode from their lists.")
    given = {
        "check_app_status": {"app_name": app},
        "check_app_permissions": {"app_name": app},
        "grant_app_permission": {"app_name": app, "permission": permission},
        "set_network_mode_preference": {"mode": mode},
        "set_apn_settings": {"apn_settings": {}},  # empty: the carrier's own values
    }
    return given.get(tool, {})


class TelecomGame:
    """One visitor's call.

    Attributes:
        conversation: The call as the agent's side sees it.
        human: True if the visitor is the customer.
        draft: What the visitor's phone showed since they last spoke, in words ready to send.
    """

    def __init__(self, task_id: str, agent: TelecomAgent, human: bool) -> None:
        try:
            task = tau2.task_by_id(task_id)
        except KeyError:
            raise Refused("Pick a task first.") from None
        self.task, self.agent, self.human, self.turn = task, agent, human, Turn()
        self.conversation = self._open()
        self.chat = list(self.conversation.messages)
        self.thoughts: list[str] = []
        self.note = ""
        self.draft = self._first_words() if human else ""
        self._act = agent.factory(task, SEED) if agent.factory else None

    def _open(self) -> TelecomConversation:
        arm, turns = self.agent.policy_arm, self.agent.max_turns
        if self.human:
            return human_conversation(self.task, arm, turns)
        return TelecomConversation(self.task, scripted_customer(self.task, SEED), arm, turns)

    def _first_words(self) -> str:
        goal = read_scenario(self.task.user_scenario).goal
        return f"Hello, {phrases.OPENINGS[goal][0]}"

    @property
    def done(self) -> bool:
        """True when the call is over."""
        return self.conversation.done

    @property
    def my_turn(self) -> bool:
        """True when the visitor is the customer and must act."""
        return isinstance(self.conversation, HumanConversation) and self.conversation.session.waiting

    def agent_turn(self, stop: threading.Event) -> None:
        """Let the agent take one turn.

        Raises:
            Refused: It is not the agent's turn.
            Stopped: The visitor pressed Stop; nothing was done.
        """
        if self.done or self.my_turn:
            raise Refused("The call is over." if self.done else "It is your turn: say something first.")
        text, cut = self._next_words(stop)
        before = self._spoken()
        heard = self.conversation.reply(text, truncated=cut)
        if self._spoken() > before:
            self.thoughts.append(view.thought_of(text))
            self.note = ""
        else:
            self.note = f"The agent's turn could not be used: {text[:200]!r}. {heard or ''}"
        self.chat.append({"role": "assistant", "content": text})
        if heard is not None and not self.my_turn:
            self.chat.append({"role": "user", "content": heard})

    def _next_words(self, stop: threading.Event) -> tuple[str, bool]:
        if self._act is not None:
            return render_call(*self._act(self.conversation.session.observation.text)), False
        return self.agent.speaker(self.chat, stop)

    def _spoken(self) -> int:
        return sum(message.role == "assistant" for message in self.conversation.session.messages)

    def say(self, text: str | None) -> None:
        """Say something as the customer; then it is the agent's turn.

        Raises:
            Refused: Not the visitor's turn, nothing said, or too long.
        """
        self._speak(cleaned(text, MAX_MESSAGE))

    def hang_up(self, text: str = "") -> None:
        """End the call as the customer."""
        self._speak(text[:MAX_MESSAGE], HANG_UP)

    def accept_transfer(self) -> None:
        """End the call as a customer who is handed to a human."""
        self._speak("", ACCEPT_TRANSFER)

    def _speak(self, words: str, mark: str = "") -> None:
        self._require_my_turn()
        try:
            observation = self.conversation.session.say(words, mark)
        except ValueError as error:
            raise Refused(str(error)) from error
        self.draft = ""
        if not self.done:
            self.chat.append({"role": "user", "content": observation.text})

    def use(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Use a phone tool as the customer; what it shows goes into the draft, in words.

        Raises:
            Refused: Not the visitor's turn, or no such tool.
        """
        self._require_my_turn()
        if tool not in DEVICE_TOOLS:
            raise Refused("The phone has no such tool.")
        observation = self.conversation.session.use(tool, arguments)
        shown = phrases.device_result(tool, observation.text)
        draft = f"{self.draft} {shown}".strip()
        self.draft = draft if len(draft) <= MAX_MESSAGE else shown[:MAX_MESSAGE]

    def _require_my_turn(self) -> None:
        if self.done:
            raise Refused("The call is over. Start another one.")
        if not self.my_turn:
            raise Refused("It is not the customer's turn. Let the agent act first.")

    def _messages(self) -> list[Any]:
        return self.conversation.session.messages

    def chat_html(self) -> str:
        """Return the call so far."""
        return view.chat(self._messages(), self.thoughts, self.note)

    def phone_html(self) -> str:
        """Return the customer's phone."""
        tools = self.conversation.session.environment.user_tools
        return view.phone(tools.device, tools.surroundings, tools.check_status_bar())

    def role_html(self) -> str:
        """Return who the visitor is when they are the customer."""
        return view.scenario(self.task.user_scenario) if self.human else ""

    def end_html(self) -> str:
        """Return tau2's checks once the call is over, else nothing."""
        return view.verdict(verdict(self.conversation.session)) if self.done else ""
