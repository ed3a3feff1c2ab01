"""Agents without a language model: yardsticks beside the trained ones, and hacks that a score must resist.

An agent is a function from what it sees to ``(thought, name, arguments)``, made fresh for each episode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.expert import Expert
from rlcas_utils.telecom.scoring import Score, score
from rlcas_utils.telecom.session import DONE, RESPOND, Session

TRANSFER_NOTICE = "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON."
_ORDER = re.compile(r"Please run (\w+) with (\{.*\})\.", re.DOTALL)

Act = tuple[str, str, dict[str, Any]]
Agent = Callable[[str], Act]
AgentFactory = Callable[[tau2.Task, int], Agent]


def _replay(actions: Iterator[Act]) -> Agent:
    """An agent that goes through a fixed list of actions and then says that it is done."""
    return lambda _seen: next(actions, ("", DONE, {}))


def do_nothing(task: tau2.Task, seed: int) -> Agent:
    """Ends the call at once."""
    return _replay(iter(()))


def always_transfer(task: tau2.Task, seed: int) -> Agent:
    """Hands every caller to a human, unheard. 12 of the 40 test tasks count this as solved."""
    summary = {"summary": "The customer needs help."}
    notice = {"content": TRANSFER_NOTICE}
    return _replay(iter([("", tau2.TRANSFER_TOOL, summary), ("", RESPOND, notice)]))


def empty_user_calls(task: tau2.Task, seed: int) -> Agent:
    """The hack: "calls" each required tool with ``{}``, the customer's tools included. Every call fails."""
    names = dict.fromkeys(action.name for action in task.evaluation_criteria.actions or [])
    # Nine, because tau2 stops at ten errors, and a stopped episode is not scored.
    return _replay(iter([("", name, {}) for name in list(names)[:9]]))


def expert(task: tau2.Task, seed: int) -> Agent:
    """The scripted expert: follows the support workflow, sees what an agent sees."""
    script = Expert(seed)

    def act(seen: str) -> Act:
        action = script.act(seen)
        return action.thought, action.name, action.arguments

    return act


def gold(task: tau2.Task, seed: int) -> Agent:
    """Replays the task's required actions. Works with `Puppet` only: no customer understands tool names."""
    actions = task.evaluation_criteria.actions or []
    return _replay(iter([_order(action) for action in actions]))


def _order(action: tau2.Action) -> Act:
    if action.requestor == "assistant":
        return "", action.name, dict(action.arguments)
    return "", RESPOND, {"content": f"Please run {action.name} with {json.dumps(action.arguments)}."}


def serve(factory: AgentFactory, task: tau2.Task, customer: tau2.BaseUser, seed: int = 0) -> Score:
    """Let an agent serve one customer and score the episode.

    Calls go to tau2 unchecked, so this is also how a hack would reach it.

    Args:
        factory: One of the agents above.
        task: The task.
        customer: A fresh customer.
        seed: Passed to the factory.
    """
    session = Session(task, customer)
    act = factory(task, seed)
    while not session.done:
        _, name, arguments = act(session.observation.text)
        session.step(name, arguments)
    return score(session)


class Puppet(tau2.BaseUser):
    """A customer who runs the tool that the agent names, with the arguments it names, and says so."""

    def __init__(self, instructions: Any = None) -> None:
        super().__init__(instructions=instructions)

    def get_init_state(self, message_history: list[tau2.Message] | None = None) -> dict:
        return {"calls": 0, "greeted": False}

    def generate_next_message(self, message: Any, state: dict) -> tuple[tau2.UserMessage, dict]:
        if isinstance(message, tau2.ToolMessage):
            return self._say(f"Done. {message.content}"), state
        if not state["greeted"]:
            state["greeted"] = True
            return self._say(self.instructions.instructions.reason_for_call), state
        order = _ORDER.match(message.content)
        if order is None:
            return self._say("Thank you. ###STOP###"), state
        state["calls"] += 1
        call = tau2.ToolCall(
            id=f"u{state['calls']}", name=order[1], arguments=json.loads(order[2]), requestor="user"
        )
        return tau2.UserMessage(role="user", tool_calls=[call], cost=0.0), state

    @classmethod
    def is_stop(cls, message: tau2.UserMessage) -> bool:
        return not message.is_tool_call() and any(m in message.content for m in tau2.STOP_MARKERS)

    def set_seed(self, seed: int) -> None:
        """Nothing here is random."""

    @staticmethod
    def _say(content: str) -> tau2.UserMessage:
        return tau2.UserMessage(role="user", content=content, cost=0.0)
