"""What an episode is worth: tau2's reward, a partial score that cannot be gamed, and the shaped reward.

tau2 offers ``action_checks`` as partial credit, and training on it is a trap: a check compares only the
argument names that the *agent* passed, ignores who called and ignores errors. An agent that "calls" the
customer's tools with ``{}`` matches 99 % of all required actions while nothing works. The robust count
below asks for the same caller, the same name, every required argument, a successful result, and no later
undoing.

Two faults of the benchmark itself are flagged beside the reward, not instead of it: a call that ended before
what was agreed could be done, and damage to the company's database that the reward does not look at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.endings import SCORED_ENDS
from rlcas_utils.telecom.session import Session

STOPPED_BEFORE_WRITE = "stopped_before_write"
DB_MISMATCH = "db_mismatch_but_reward_1"
EVALUATION_ERROR = "evaluation_error"
FLAGS = {
    STOPPED_BEFORE_WRITE: "the customer agreed to something and ended the call in the same breath",
    DB_MISMATCH: "reward 1, although the company's database is not what the required actions leave behind",
    EVALUATION_ERROR: "tau2's evaluator could not replay the episode, which scores 0",
}

_AGREES = re.compile(
    r"\W*(yes|yeah|yep|sure|ok|okay|alright|of course|please (do|go)|go ahead|that's fine|sounds good)\b",
    re.IGNORECASE,
)

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
    robust_match: float = 0.0  # required actions really done, in [0, 1]: the honest twin of the raw match
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
    shares = [robust_action_match(task, messages)] if task.evaluation_criteria.actions else []
    open_at_start = [now for start, now in zip(met_at_start, met_now, strict=True) if not start]
    if open_at_start:
        shares.append(sum(open_at_start) / len(open_at_start))
    return sum(shares) / len(shares) if shares else 0.0


def robust_action_match(task: tau2.Task, messages: Sequence[tau2.Message]) -> float:
    """Share of the required actions that were really done and still stand."""
    actions, calls = task.evaluation_criteria.actions or [], calls_of(messages)
    return sum(action_done(action, calls) for action in actions) / len(actions) if actions else 0.0


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
    task, messages = session.task, session.messages
    reward, flags = 0.0, []
    if session.end in SCORED_ENDS:
        try:
            reward = _tau2_reward(session)
        except ValueError:
            flags.append(EVALUATION_ERROR)
    if _hung_up_on_question(messages):
        flags.append(STOPPED_BEFORE_WRITE)
    if reward == 1.0 and session.environment.get_db_hash() != required_db_hash(task.id):
        flags.append(DB_MISMATCH)
    return Score(
        reward,
        partial_score(task, messages, session.met_at_start, session.assertions_met()),
        raw_action_match(task, messages),
        str(session.end),
        robust_action_match(task, messages),
        tuple(flags),
    )


def _tau2_reward(session: Session) -> float:
    return tau2.evaluate_simulation(
        simulation=session.simulation(),
        task=session.task,
        evaluation_type=tau2.EvaluationType.ALL,
        solo_mode=False,
        domain=tau2.DOMAIN,
    ).reward


@cache
def required_db_hash(task_id: str) -> str:
    """Hash of the company's database after exactly the required actions of a task.

    tau2's own database check compares with a replay that never carries the phone's changes over to the
    company (a paid bill stays unpaid), so it fails for correct repairs; here they are carried over.
    """
    task, environment = tau2.task_by_id(task_id), tau2.make_environment()
    start = task.initial_state
    environment.set_state(
        initialization_data=start.initialization_data,
        initialization_actions=start.initialization_actions,
        message_history=[],
    )
    for action in task.evaluation_criteria.actions or []:
        environment.make_tool_call(action.name, requestor=action.requestor, **action.arguments)
        environment.sync_tools()
    return environment.get_db_hash()


def _hung_up_on_question(messages: Sequence[tau2.Message]) -> bool:
    """The customer agrees and ends the call in one breath, so what was agreed to never happens."""
    spoken = [m for m in messages if getattr(m, "content", None) and not isinstance(m, tau2.ToolMessage)]
    if len(spoken) < 2:
        return False
    before, last = spoken[-2:]
    words = last.content
    for marker in tau2.STOP_MARKERS:
        words = words.replace(marker, "")
    stopped = isinstance(last, tau2.UserMessage) and words != last.content
    asked = isinstance(before, tau2.AssistantMessage) and before.content.rstrip().endswith("?")
    return stopped and asked and bool(_AGREES.match(words))
