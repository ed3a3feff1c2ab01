"""A telecom episode whose customer is a person: the session waits at the customer's turn as at the agent's.

`Session` inverts the agent, so that actions are put in from outside. Here the customer is inverted in the
same way: words or one phone tool at a time. tau2's orchestrator, limits and evaluator stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.conversation import TelecomConversation
from rlcas_utils.telecom.endings import MAX_TURNS
from rlcas_utils.telecom.prompt import customer_tools, system_prompt
from rlcas_utils.telecom.session import Observation, Session

HANG_UP, ACCEPT_TRANSFER = "###STOP###", "###TRANSFER###"
MAX_MESSAGES = 400  # a person tries more on the phone than a script does
_MARK = re.compile(r"#{2,}")


class _PersonsTurn(Exception):
    """The orchestrator asks the customer, and the person has not acted yet."""


class Person(tau2.BaseUser):
    """A tau2 user that says or does what was put into its slot."""

    def __init__(self, instructions: Any = None) -> None:
        super().__init__(instructions=instructions)
        self.slot: tau2.UserMessage | None = None
        self.calls = 0

    def get_init_state(self, message_history: list[tau2.Message] | None = None) -> dict:
        return {}

    def generate_next_message(self, message: Any, state: dict) -> tuple[tau2.UserMessage, dict]:
        if self.slot is None:
            raise _PersonsTurn
        said, self.slot = self.slot, None
        return said, state

    @classmethod
    def is_stop(cls, message: tau2.UserMessage) -> bool:
        return not message.is_tool_call() and any(m in (message.content or "") for m in tau2.STOP_MARKERS)

    def set_seed(self, seed: int) -> None:
        """A person has no seed."""


class HumanSession(Session):
    """An episode between an outside agent and a person.

    Attributes:
        waiting: True while it is the person's turn.
    """

    def __init__(self, task: tau2.Task, max_turns: int = 100) -> None:
        self.person = Person(task.user_scenario)
        super().__init__(task, self.person, max_turns=max_turns, max_steps=MAX_MESSAGES)

    @property
    def waiting(self) -> bool:
        """True while it is the person's turn."""
        return not self.done and self._orchestrator.to_role == tau2.Role.USER

    def say(self, text: str, mark: str = "") -> Observation:
        """Say something to the agent.

        Args:
            text: The words. Marks that tau2 reads as the end of a call are taken out of them.
            mark: `HANG_UP` or `ACCEPT_TRANSFER` ends the call with these words.

        Raises:
            ValueError: No words and no mark; tau2 refuses empty messages.
        """
        words = f"{_MARK.sub('', text).strip()} {mark}".strip()
        if not words:
            raise ValueError("there is nothing to say; tau2 refuses empty messages. Write something.")
        return self._act(tau2.UserMessage(role="user", content=words, cost=0.0))

    def use(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Observation:
        """Use one of the phone's 30 tools; the result is the observation, and it is still the person's turn.

        Raises:
            ValueError: The phone has no such tool.
        """
        if tool not in customer_tools():
            raise ValueError(f"the phone has no tool {tool!r}. Use one of {', '.join(customer_tools())}.")
        self.person.calls += 1
        call = tau2.ToolCall(
            id=f"u{self.person.calls}", name=tool, arguments=dict(arguments or {}), requestor="user"
        )
        return self._act(tau2.UserMessage(role="user", tool_calls=[call], cost=0.0))

    def _act(self, message: tau2.UserMessage) -> Observation:
        if not self.waiting:
            raise RuntimeError("it is not the customer's turn; let the agent act, or start a new call")
        self.person.slot = message
        self.observation = self._advance()
        return self.observation

    def _advance(self) -> Observation:
        try:
            return super()._advance()
        except _PersonsTurn:
            if self.turns >= self.max_turns:
                self.end = MAX_TURNS
            message = self._orchestrator.message
            is_tool = isinstance(message, tau2.ToolMessage)
            return Observation(message.content or "", is_tool, bool(is_tool and message.error))


class HumanConversation(TelecomConversation):
    """A conversation between a language model and a person; `messages` opens with the system prompt alone."""

    def __post_init__(self) -> None:
        """Open the line; the agent's greeting is said, and the person is asked."""
        self.session = HumanSession(self.task, self.max_turns)
        self.customer = self.session.person
        system = system_prompt(self.policy_arm)
        self.messages = [{"role": "system", "content": system}] if system else []


def human_conversation(task: tau2.Task, policy_arm: str, max_turns: int) -> HumanConversation:
    """Open a call in which a person is the customer of `task`."""
    return HumanConversation(task, Person(task.user_scenario), policy_arm, max_turns)
