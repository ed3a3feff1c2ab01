"""What an episode is worth: tau2's reward, a partial score that cannot be gamed, and the shaped reward.

tau2 offers ``action_checks`` as partial credit, and training on it is a trap: a check compares only the
argument names that the *agent* passed, ignores who called and ignores errors. An agent that "calls" the
customer's tools with ``{}`` matches 99 % of all required actions while nothing works. The robust count
below asks for the same caller, the same name, every required argument, a successful result, and no later
undoing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.session import SCORED_ENDS, Session

_AGREES = re.compile(r"(yes|sure|ok|okay|please do|go ahead)\b", re.IGNORECASE)
_WRITES = {"suspend_line", "resume_line", "enable_roaming", "disable_roaming", "refuel_data"}

PARTIAL_WEIGHT = 0.4  # the published shaping coefficient; below 1, so a solved task always outranks progress

# A later successful call of the right-hand tool takes the left-hand one back.
_UNDONE_BY = {
    "enable_roaming": "disable_roaming",
    "resume_line": "suspend_line",
    "disconnect_vpn": "connect_vpn",
}


@dataclass(frozen=True)
class Call:
    """One tool call of a trajectory, with its outcome."""

    requestor: str
    name: str
    arguments: dict[str, Any]
    error: bool


@dataclass(frozen=True)
class Score:
    """Everything measured about one finished episode."""

    reward: float  # tau2's own, 0 or 1
    partial: float  # robust, in [0, 1]
    raw_action_match: float  # tau2's gameable one, in [0, 1]; for the lesson only
    end: str
    flags: tuple[str, ...] = field(default=())

    @property
    def shaped(self) -> float:
        """Training reward: ``reward + 0.4 * partial``."""
        return self.reward + PARTIAL_WEIGHT * self.partial


def calls_of(messages: Sequence[tau2.Message]) -> list[Call]:
    """All tool calls of a trajectory, in order, each with whether its result was an error."""
    failed = {m.id: bool(m.error) for m in messages if isinstance(m, tau2.ToolMessage)}
    return [
        Call(call.requestor, call.name, dict(call.arguments), failed.get(call.id, True))
        for message in messages
        for call in getattr(message, "tool_calls", None) or []
    ]


def action_done(action: tau2.Action, calls: Sequence[Call]) -> bool:
    """True if a required action was really performed and still stands.

    Args:
        action: A gold action of the task.
        calls: The calls of the trajectory (`calls_of`).
    """
    keys = action.arguments.keys() if action.compare_args is None else action.compare_args
    good = [c for c in calls if not c.error and c.requestor == action.requestor]
    hits = [
        i
        for i, c in enumerate(good)
        if c.name == action.name and all(c.arguments.get(k) == action.arguments.get(k) for k in keys)
    ]
    if not hits:
        return False
    if action.name.startswith("toggle_"):  # twice is back where it started
        return len(hits) % 2 == 1
    undo = _UNDONE_BY.get(action.name)
    return all(c.name != undo for c in good[hits[-1] + 1 :])


def partial_score(
    task: tau2.Task, messages: Sequence[tau2.Message], met_at_start: Sequence[bool], met_now: Sequence[bool]
) -> float:
    """Robust progress on a task.

    Mean of two shares: required actions really done, and assertions that were false at the start and hold
    now. Assertions true from the start count for nothing (they would pay for doing nothing); if all were
    true at the start, only the actions count.

    Returns:
        A number in [0, 1].
    """
    actions = task.evaluation_criteria.actions or []
    calls = calls_of(messages)
    shares = []
    if actions:
        shares.append(sum(action_done(a, calls) for a in actions) / len(actions))
    open_at_start = [now for start, now in zip(met_at_start, met_now, strict=True) if not start]
    if open_at_start:
        shares.append(sum(open_at_start) / len(open_at_start))
    return sum(shares) / len(shares) if shares else 0.0


def raw_action_match(task: tau2.Task, messages: Sequence[tau2.Message]) -> float:
    """tau2's own share of matched actions: shown beside the robust one, never trained on."""
    checks = tau2.ActionEvaluator.calculate_reward(task, list(messages)).action_checks or []
    return sum(c.action_match for c in checks) / len(checks) if checks else 0.0


def score(session: Session) -> Score:
    """Score a finished episode with tau2's evaluator and ours.

    tau2 gives 0 to every episode that neither side ended; its evaluator can also raise on replay, which
    scores 0 with the flag ``evaluation_error``.
    """
    if not session.done:
        raise RuntimeError("the episode is not over, so it has no score. Step it to its end or abandon it.")
    messages = session.messages
    flags = _flags(session.task, messages)
    reward = 0.0
    if session.end in SCORED_ENDS:
        try:
            reward = tau2.evaluate_simulation(
                simulation=session.simulation(),
                task=session.task,
                evaluation_type=tau2.EvaluationType.ALL,
                solo_mode=False,
                domain=tau2.DOMAIN,
            ).reward
        except ValueError:
            flags = (*flags, "evaluation_error")
    partial = partial_score(session.task, messages, session.met_at_start, session.assertions_met())
    return Score(reward, partial, raw_action_match(session.task, messages), str(session.end), flags)


def _flags(task: tau2.Task, messages: Sequence[tau2.Message]) -> tuple[str, ...]:
    """Things the reward does not see: changes nobody asked for, and a customer who hung up on a question."""
    flags = []
    gold = task.evaluation_criteria.actions or []
    writes = [
        c for c in calls_of(messages) if c.requestor == "assistant" and not c.error and c.name in _WRITES
    ]
    if any(not any(a.name == c.name and a.arguments == c.arguments for a in gold) for c in writes):
        flags.append("write_outside_gold")
    spoken = [m for m in messages if getattr(m, "content", None) and not isinstance(m, tau2.ToolMessage)]
    if len(spoken) >= 2 and _hung_up_on_question(spoken[-2], spoken[-1]):
        flags.append("stopped_before_write")
    return tuple(flags)


def _hung_up_on_question(before: tau2.Message, last: tau2.Message) -> bool:
    """The customer agrees and ends the call in one breath, so what was agreed to never happens."""
    stopped = any(marker in last.content for marker in tau2.STOP_MARKERS)
    asked = isinstance(before, tau2.AssistantMessage) and before.content.rstrip().endswith("?")
    return stopped and asked and bool(_AGREES.match(last.content.strip()))
