"""Why an episode got its reward: every check that tau2 makes at the end, in words, met or unmet."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.endings import ENDINGS, SCORED_ENDS
from rlcas_utils.telecom.scoring import FLAGS, action_done, calls_of, score
from rlcas_utils.telecom.session import Session


@dataclass(frozen=True)
class Check:
    """One thing that must hold, in words."""

    text: str
    met: bool


@dataclass(frozen=True)
class Verdict:
    """The end of an episode.

    Attributes:
        reward: tau2's own, 0 or 1.
        partial: The robust partial score, in [0, 1].
        ending: How the call ended, in words.
        checks: What the reward depends on.
        actions: The task's expected actions, each with whether it was really done; decides nothing by itself
            unless tau2 lists actions in the reward's basis, and then also stands in `checks`.
        flags: What is odd about the reward, in words.
    """

    reward: float
    partial: float
    ending: str
    checks: tuple[Check, ...]
    actions: tuple[Check, ...]
    flags: tuple[str, ...]


def verdict(session: Session) -> Verdict:
    """Explain the score of a finished episode.

    Args:
        session: Ended in any way.

    Raises:
        RuntimeError: The episode is not over.
    """
    result, task = score(session), session.task
    ended = ENDINGS[result.end]
    checks = [Check("the call ended in a way that tau2 scores", result.end in SCORED_ENDS)]
    assertions = task.evaluation_criteria.env_assertions or []
    checks += [
        Check(_words(a.func_name, a.arguments), met)
        for a, met in zip(assertions, session.assertions_met(), strict=True)
    ]
    calls = calls_of(session.messages)
    expected = task.evaluation_criteria.actions or []
    actions = [Check(_call(a), action_done(a, calls)) for a in expected]
    if _action_counts(task):
        matched = tau2.ActionEvaluator.calculate_reward(task, list(session.messages)).action_checks or []
        checks += [Check(f"expected action {_call(c.action)}", c.action_match) for c in matched]
    flags = tuple(FLAGS[name] for name in result.flags)
    return Verdict(result.reward, result.partial, ended.meaning, tuple(checks), tuple(actions), flags)


def _action_counts(task: tau2.Task) -> bool:
    return any(getattr(kind, "value", kind) == "ACTION" for kind in task.evaluation_criteria.reward_basis)


def _words(function: str, arguments: dict[str, Any]) -> str:
    """``assert_service_status(expected_status="connected")`` as "service status: connected"."""
    wanted = ", ".join(str(value) for value in arguments.values())
    return f"{function.removeprefix('assert_').replace('_', ' ')}{': ' + wanted if wanted else ''}"


def _call(action: tau2.Action) -> str:
    arguments = ", ".join(f"{k}={json.dumps(v)}" for k, v in action.arguments.items())
    who = "agent" if action.requestor == "assistant" else "customer"
    return f"{who}: {action.name}({arguments})"
