"""A telecom episode as seen by a language model: text in, text out.

`TelecomConversation` is what the rollout engine drives. It reads one model turn, performs at most one
call, and returns what the model sees next. What cannot be read is never executed and no other action is
put in its place: the model gets the reason as text, and the reason is counted. One exception keeps a customer
from waiting in silence: a model that says nothing at all twice in a row has a neutral sentence said for it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from rlcas_utils.parsing import Invalid, ParsedCall, parse_tool_call
from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.endings import UNUSABLE
from rlcas_utils.telecom.prompt import (
    customer_tools,
    render_observation,
    required_arguments,
    system_prompt,
)
from rlcas_utils.telecom.scoring import Score, score
from rlcas_utils.telecom.session import DONE, RESPOND, Observation, Session

USER_TOOL = "user_tool_called_by_agent"
UNKNOWN_TOOL = "unknown_tool"
TOOL_ERROR = "tool_error"
SAID_FOR_IT = "neutral_sentence"
MAX_UNUSABLE = 5  # unusable turns in a row; a model that babbles would otherwise babble to the turn cap
NEUTRAL_SENTENCE = "One moment, please."
_OUTSIDE_TOOLS = {RESPOND, DONE}
_THOUGHT = re.compile(r"<think>.*?(</think>|$)", re.DOTALL)


@dataclass
class TelecomConversation:
    """One episode between a language model and a customer.

    Args:
        task: The tau2 task.
        customer: A fresh customer for this episode.
        policy_arm: Which system prompt the model gets (`prompt.POLICY_ARMS`).
        max_turns: Cap on model turns, unusable ones included.

    Attributes:
        messages: The opening chat: system prompt, if the arm has one, and the customer's first words.
        tool_errors: How often each kind of mistake happened.
        turns: ``(model text, what it saw next)`` in order.
        first_transfer_turn: Turn (from 1) of the first transfer to a human, or None.
    """

    task: tau2.Task
    customer: tau2.BaseUser
    policy_arm: str = "compact"
    max_turns: int = 100
    tool_errors: Counter[str] = field(default_factory=Counter)
    turns: list[tuple[str, str | None]] = field(default_factory=list)
    first_transfer_turn: int | None = None
    _unusable: int = 0
    _silent: int = 0
    _score: Score | None = None

    def __post_init__(self) -> None:
        self.session = Session(self.task, self.customer, max_turns=self.max_turns)
        system = system_prompt(self.policy_arm)
        opening = [{"role": "system", "content": system}] if system else []
        self.messages = [*opening, {"role": "user", "content": self._show(self.session.observation)}]

    @property
    def done(self) -> bool:
        """True once the episode has ended."""
        return self.session.done

    def reply(self, text: str, *, truncated: bool = False) -> str | None:
        """Perform one model turn.

        Args:
            text: The decoded turn, without special tokens.
            truncated: True if the turn was cut by its token limit.

        Returns:
            What the model reads next, or None when the episode is over.
        """
        if self.session.failure:  # the customer failed before the model could say a word
            return None
        parsed = parse_tool_call(text, required_arguments(), truncated=truncated)
        self._silent = 0 if _THOUGHT.sub("", text).strip() else self._silent + 1
        problem = self._problem(parsed)
        if problem is None:
            self._unusable = 0
            answer = self._perform(parsed.name, parsed.arguments)
        else:
            answer = self._refuse(*problem)
        self.turns.append((text, answer))
        return answer

    def abandon(self, reason: str) -> None:
        """End the episode because the model has no room for another turn; it scores 0."""
        self.session.abandon(reason)

    @property
    def score(self) -> Score:
        """The score of the finished episode (computed once)."""
        if self._score is None:
            self._score = score(self.session)
        return self._score

    def _problem(self, parsed: ParsedCall | Invalid) -> tuple[str, str] | None:
        """Why a turn cannot be performed: the kind that is counted and the text that the model gets."""
        if isinstance(parsed, Invalid):
            return parsed.reason, f"Error: {parsed.message} Nothing was done."
        if not _is_finite(parsed.arguments):
            return "bad_arguments", "Error: a number is not finite. Nothing was done."
        content = parsed.arguments.get("content")
        if parsed.name == RESPOND and not (isinstance(content, str) and content.strip()):
            return "bad_arguments", "Error: the content of respond is no text. Nothing was said."
        return None

    def _refuse(self, kind: str, message: str) -> str | None:
        """Count an unusable turn and say why it was one; a second silent one gets a sentence put in."""
        self.tool_errors[kind] += 1
        self._unusable += 1
        if self._unusable >= MAX_UNUSABLE:
            self.session.spend_turn()
            self.session.abandon(UNUSABLE)
        elif self._silent >= 2:
            self.tool_errors[SAID_FOR_IT] += 1
            self._silent = 0
            return self._perform(RESPOND, {"content": NEUTRAL_SENTENCE})
        else:
            self.session.spend_turn()
        return None if self.done else render_observation(message, is_tool_result=True)

    def _perform(self, name: str, arguments: dict[str, Any]) -> str | None:
        """Execute a call. Tools the agent does not have go to tau2 as well, which answers with an error."""
        if name == tau2.TRANSFER_TOOL and self.first_transfer_turn is None:
            self.first_transfer_turn = self.session.turns + 1
        observation = self.session.step(name, arguments)
        hint = ""
        if name in customer_tools():
            self.tool_errors[USER_TOOL] += 1
            hint = " Only the customer can do this, on the phone. Ask with respond."
        elif name not in required_arguments():
            self.tool_errors[UNKNOWN_TOOL] += 1
            hint = " There is no such tool."
        elif observation.is_error and name not in _OUTSIDE_TOOLS:
            self.tool_errors[TOOL_ERROR] += 1
        return None if self.done else self._show(observation, hint)

    @staticmethod
    def _show(observation: Observation, hint: str = "") -> str:
        return render_observation(observation.text + hint, is_tool_result=observation.is_tool_result)


def _is_finite(value: Any) -> bool:
    """False if a number anywhere inside is infinite or NaN; tau2 would accept it and break the replay."""
    if isinstance(value, dict):
        return all(_is_finite(v) for v in value.values())
    if isinstance(value, list):
        return all(_is_finite(v) for v in value)
    return not isinstance(value, float) or math.isfinite(value)
