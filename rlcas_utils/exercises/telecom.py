"""Exercises of notebook 06: which call counts, how far an episode got, the score by group, pass^k."""

from __future__ import annotations

from math import comb
from typing import Any

from rlcas_utils.exercises.checker import Exercise
from rlcas_utils.statistics import pass_at_k
from rlcas_utils.telecom import scoring, tau2


def _call_counts(action: tau2.Action, call: scoring.Call) -> bool:
    """True if the call really does what the task requires."""
    same_caller = call.requestor == action.requestor and call.name == action.name
    same_arguments = all(call.arguments.get(key) == value for key, value in action.arguments.items())
    return same_caller and same_arguments and not call.error


def _compares_what_was_passed(action: tau2.Action, call: scoring.Call) -> bool:
    passed = all(action.arguments.get(key) == value for key, value in call.arguments.items())
    return call.requestor == action.requestor and call.name == action.name and passed and not call.error


def _ignores_the_caller(action: tau2.Action, call: scoring.Call) -> bool:
    return _call_counts(action, scoring.Call(action.requestor, call.name, call.arguments, call.error))


def _ignores_errors(action: tau2.Action, call: scoring.Call) -> bool:
    return _call_counts(action, scoring.Call(call.requestor, call.name, call.arguments, error=False))


def _wants_equal_arguments(action: tau2.Action, call: scoring.Call) -> bool:
    return _call_counts(action, call) and call.arguments == action.arguments


def _action(requestor: str, name: str, **arguments: Any) -> tau2.Action:
    return tau2.Action(action_id="1", requestor=requestor, name=name, arguments=arguments)


_TOGGLE, _REFUEL = _action("user", "toggle_data"), _action("assistant", "refuel_data", gb_amount=2.0)
_LIMITED = {"gb_amount": 2.0, "line_id": "L1002"}

call_counts = Exercise(
    reference=_call_counts,
    inputs=[
        (_TOGGLE, scoring.Call("user", "toggle_data", {}, error=False)),
        (_TOGGLE, scoring.Call("assistant", "toggle_data", {}, error=False)),
        (_TOGGLE, scoring.Call("user", "toggle_data", {}, error=True)),
        (_REFUEL, scoring.Call("assistant", "refuel_data", {}, error=False)),
        (_REFUEL, scoring.Call("assistant", "refuel_data", {"gb_amount": 1.0}, error=False)),
        (_REFUEL, scoring.Call("assistant", "refuel_data", _LIMITED, error=False)),
        (_REFUEL, scoring.Call("assistant", "get_data_usage", _LIMITED, error=False)),
    ],
    mistakes={
        "you compared the arguments that were passed, as tau2 does; an empty {} then matches everything.": (
            _compares_what_was_passed
        ),
        "you did not ask who called; the agent cannot press the switches of the customer's phone.": (
            _ignores_the_caller
        ),
        "you did not ask whether the call worked; one that returned an error changed nothing.": (
            _ignores_errors
        ),
        "you wanted equal arguments; one more than required does not make a call wrong.": (
            _wants_equal_arguments
        ),
    },
)


def _partial_score(done: list[bool], met_at_start: list[bool], met_now: list[bool]) -> float:
    """Robust progress of an episode, 0 to 1."""
    shares = [sum(done) / len(done)]
    opened = [now for start, now in zip(met_at_start, met_now, strict=True) if not start]
    if opened:
        shares.append(sum(opened) / len(opened))
    return sum(shares) / len(shares)


def _opened(met_at_start: list[bool], met_now: list[bool]) -> list[bool]:
    return [now for start, now in zip(met_at_start, met_now, strict=True) if not start]


def _pays_for_nothing(done: list[bool], met_at_start: list[bool], met_now: list[bool]) -> float:
    return (sum(done) / len(done) + sum(met_now) / len(met_now)) / 2


def _pools_the_checks(done: list[bool], met_at_start: list[bool], met_now: list[bool]) -> float:
    checks = [*done, *_opened(met_at_start, met_now)]
    return sum(checks) / len(checks)


def _always_halves(done: list[bool], met_at_start: list[bool], met_now: list[bool]) -> float:
    opened = _opened(met_at_start, met_now)
    return (sum(done) / len(done) + (sum(opened) / len(opened) if opened else 0.0)) / 2


partial_score = Exercise(
    reference=_partial_score,
    inputs=[
        ([True, False], [False], [True]),
        ([False, False], [True, False], [True, False]),
        ([True, False], [True], [True]),
        ([True] * 4 + [False] * 3, [False] * 3, [True, False, True]),
    ],
    mistakes={
        "assertions that held from the start were counted, so an agent that does nothing is paid.": (
            _pays_for_nothing
        ),
        "all checks went into one share; actions and assertions weigh half each, however many there are.": (
            _pools_the_checks
        ),
        "no assertion was open at the start, so only the actions count; do not divide by two then.": (
            _always_halves
        ),
    },
)


def _split_score(rows: list[dict]) -> dict[str, float]:
    """Share of attempts solved: of all, of the fixable tasks, of the transfer tasks."""
    groups = {"all": [], "fixable": [], "transfer": []}
    for row in rows:
        if not row["lost"]:
            groups["all"].append(row["reward"])
            groups[row["group"]].append(row["reward"])
    return {name: sum(rewards) / len(rewards) for name, rewards in groups.items() if rewards}


def _averages_the_groups(rows: list[dict]) -> dict[str, float]:
    parts = _split_score(rows)
    own = [parts[name] for name in ("fixable", "transfer") if name in parts]
    return parts | {"all": sum(own) / len(own)}


def _divides_by_all(rows: list[dict]) -> dict[str, float]:
    played = [row for row in rows if not row["lost"]]
    total = {name: sum(r["reward"] for r in played if r["group"] == name) for name in _split_score(rows)}
    return {name: value / len(played) for name, value in total.items()} | {
        "all": sum(r["reward"] for r in played) / len(played)
    }


def _counts_the_lost(rows: list[dict]) -> dict[str, float]:
    return _split_score([dict(row, lost="") for row in rows])


def _rows(text: str) -> list[dict]:
    """Rows from "F1 T0 Fx": group, reward, x for an attempt lost to the customer's server."""
    names = {"F": "fixable", "T": "transfer"}
    return [
        {
            "group": names[word[0]],
            "reward": float(word[1] == "1"),
            "lost": "timeout" if word[1] == "x" else "",
        }
        for word in text.split()
    ]


split_score = Exercise(
    reference=_split_score,
    inputs=[(_rows("F0 F0 F0 T1"),), (_rows("F1 F0"),), (_rows("F1 Fx T1 T0"),)],
    mistakes={
        "the two groups were averaged as if they had equally many attempts; count attempts.": (
            _averages_the_groups
        ),
        "each group was divided by all attempts; divide by the group's own.": _divides_by_all,
        "an attempt lost to the customer's server was counted as the agent's failure.": _counts_the_lost,
    },
)


def _pass_hat_k(n: int, c: int, k: int) -> float:
    """Chance that k of n attempts, drawn without replacement, are all among the c solved ones."""
    return comb(c, k) / comb(n, k)


pass_hat_k = Exercise(
    reference=_pass_hat_k,
    inputs=[(3, 1, 2), (4, 2, 2), (3, 3, 3), (3, 0, 1)],
    mistakes={
        "(c/n)^k draws the same attempt twice; draw without putting back.": lambda n, c, k: (c / n) ** k,
        "that is pass@k, at least one solved; pass^k wants all k.": pass_at_k,
        "that is the share solved, whatever k is; ask about k attempts at once.": lambda n, c, k: c / n,
    },
)
