"""Metrics from rows, under the names that run records use.

The unit of every interval is the ticket or the task. `n` counts those units; trials and sampling seeds are
listed apart, because ten trials of one task are not ten tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from rlcas_utils.benchmark.rows import check_rows
from rlcas_utils.statistics import (
    Estimate,
    cluster_mean_interval,
    common_k,
    mean_interval,
    paired_difference,
    pass_at_k,
    pass_hat_k,
    ratio_interval,
)

INFRASTRUCTURE = "infrastructure_error"
K = 3
Rows = Sequence[Mapping[str, Any]]


class MetricSink(Protocol):
    """What takes metrics: an open stage of the course."""

    def metric(self, name: str, value: float, *, n: int, seeds: Any, ci95: Any, unit: str) -> Any:
        """Keep one metric."""


def _by(rows: Iterable[Mapping[str, Any]], field: str) -> dict[Any, list[Mapping[str, Any]]]:
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[field], []).append(row)
    return groups


def shared_rows(rows_by_agent: Mapping[str, Rows], unit: str) -> tuple[dict[str, Rows], int]:
    """Keep the episodes on units that every agent played, so that averages stand for the same work.

    Args:
        rows_by_agent: checked rows of each agent.
        unit: "ticket_id" or "task_id".

    Returns:
        The kept rows and the number of units that were left out.

    Raises:
        ValueError: if no unit was played by all.
    """
    played = [{row[unit] for row in rows} for rows in rows_by_agent.values()]
    shared, seen = set.intersection(*played), set.union(*played)
    if not shared:
        raise ValueError(
            f"No {unit} was played by all of {', '.join(rows_by_agent)}; there is nothing to compare. "
            "Evaluate the agents on the same ones."
        )
    kept = {agent: [row for row in rows if row[unit] in shared] for agent, rows in rows_by_agent.items()}
    return kept, len(seen - shared)


def desk_estimates(rows: Rows, seed: int = 0) -> dict[str, Estimate]:
    """Return the four desk figures of one agent: return, resolution_rate, steps and parse_failure_rate.

    Args:
        rows: desk rows of one agent; several seeds of one ticket count as one unit.
        seed: of the bootstrap.

    Returns:
        Return in reward points, resolution as a share of episodes, steps per episode, and the share of steps
        in which the agent's output could not be used.
    """
    tickets = list(_by(rows, "ticket_id").values())
    failures = [float(np.mean([row["parse_failures"] for row in ticket])) for ticket in tickets]
    steps = [float(np.mean([row["steps"] for row in ticket])) for ticket in tickets]
    returns = [[row["return"] for row in ticket] for ticket in tickets]
    resolved = [[float(row["resolved"]) for row in ticket] for ticket in tickets]
    return {
        "return": cluster_mean_interval(returns, seed, proportion=False),
        "resolution_rate": cluster_mean_interval(resolved, seed, proportion=True),
        "steps": mean_interval(steps, seed, proportion=False),
        "parse_failure_rate": ratio_interval(failures, steps, seed),
    }


DESK_UNITS = {
    "return": "reward",
    "resolution_rate": "share of episodes",
    "steps": "steps",
    "parse_failure_rate": "share of steps",
}


def desk_metrics(rows: Rows) -> dict[str, dict]:
    """Return `desk/<agent>/...` metrics for every agent in the rows, as entries of a run record.

    Raises:
        RowError: if a row is damaged.
    """
    metrics = {}
    for agent, own in _by(check_rows(rows, "desk rows", "desk"), "agent").items():
        seeds = sorted({row["seed"] for row in own})
        for name, estimate in desk_estimates(own).items():
            metrics[f"desk/{agent}/{name}"] = estimate.metric(DESK_UNITS[name], seeds)
    return metrics


def desk_difference(rows_a: Rows, rows_b: Rows, field: str = "return") -> Estimate:
    """Return the mean of `a - b` over tickets, each agent's seeds averaged per ticket.

    Sampling seeds of two agents are unrelated, so the ticket is what pairs them.

    Raises:
        ValueError: if the two did not play the same tickets.
    """

    def per_ticket(rows: Rows) -> list[dict]:
        tickets = _by(rows, "ticket_id").items()
        return [{"ticket_id": t, field: float(np.mean([row[field] for row in own]))} for t, own in tickets]

    return paired_difference(per_ticket(rows_a), per_ticket(rows_b), ("ticket_id",), value=field).estimate


def coverage(rows: Rows) -> tuple[int, int]:
    """Return how many telecom trials were evaluated, and how many there should be.

    A trial lost to an infrastructure error (the customer's or the agent's server failed) says nothing about
    the agent and is not evaluated. Every other ending is, with the reward that the benchmark gave.
    """
    trials = [len(own) for own in _by(rows, "task_id").values()]
    expected = max(len(rows), len(trials) * max(trials))
    return sum(row["end"] != INFRASTRUCTURE for row in rows), expected


def pass_estimates(rows: Rows, k: int = K, seed: int = 0) -> tuple[dict[str, Estimate], str]:
    """Return avg@k, pass@k and pass^k with the task as the unit, and a note where k had to shrink.

    Args:
        rows: evaluated telecom rows of one agent. A trial is solved when its reward is 1.
        k: tries asked about; lowered to the fewest trials that a task has.
        seed: of the bootstrap.
    """
    tasks = [[row["reward"] >= 1.0 for row in own] for own in _by(rows, "task_id").values()]
    largest, note = common_k([len(task) for task in tasks])
    k = min(k, largest)
    counts = [(len(task), sum(task)) for task in tasks]
    average = cluster_mean_interval([[float(x) for x in task] for task in tasks], seed, proportion=True)
    at_least = mean_interval([pass_at_k(n, c, k) for n, c in counts], seed, proportion=True)
    all_of = mean_interval([pass_hat_k(n, c, k) for n, c in counts], seed, proportion=True)
    return {f"avg@{max(len(t) for t in tasks)}": average, f"pass@{k}": at_least, f"pass^{k}": all_of}, note


def histogram(rows: Rows) -> dict[str, int]:
    """Return how many tasks were solved 0, 1, ... times, such as `{"0/3": 25, "3/3": 10}`."""
    tasks = [[row["reward"] >= 1.0 for row in own] for own in _by(rows, "task_id").values()]
    most = max(len(task) for task in tasks)
    seen = Counter(f"{sum(task)}/{len(task)}" for task in tasks)
    return {**{f"{i}/{most}": 0 for i in range(most + 1)}, **seen}


def _one_telecom_agent(agent: str, rows: Rows) -> dict[str, dict]:
    seeds = sorted({row["seed"] for row in rows})
    evaluated, expected = coverage(rows)
    tasks = len(_by(rows, "task_id"))
    base = f"telecom/{agent}"
    cover = {
        "value": evaluated / expected,
        "n": tasks,
        "seeds": seeds,
        "ci95": None,
        "unit": "share of trials",
    }
    metrics = {f"{base}/coverage": cover}
    if evaluated < expected:
        solved = sum(row["reward"] >= 1.0 for row in rows if row["end"] != INFRASTRUCTURE)
        value = solved / expected
        metrics[f"{base}/avg_if_lost_trials_failed"] = {**cover, "value": value, "unit": "share of trials"}
        return metrics
    parts = {"": rows, "fixable/": [r for r in rows if r["group"] == "fixable"]}
    parts["transfer/"] = [r for r in rows if r["group"] == "transfer"]
    for part, own in parts.items():
        if own:
            estimates, _ = pass_estimates(own)
            metrics |= {f"{base}/{part}{name}": e.metric("share", seeds) for name, e in estimates.items()}
    transfers = [[float(row["transferred"]) for row in own] for own in _by(rows, "task_id").values()]
    rate = cluster_mean_interval(transfers, proportion=True)
    metrics[f"{base}/transfer_rate"] = rate.metric("share of trials", seeds)
    turns = [row["first_transfer_turn"] for row in rows if row["first_transfer_turn"] is not None]
    if turns:
        entry = {
            "value": float(np.median(turns)),
            "n": len(turns),
            "seeds": seeds,
            "ci95": None,
            "unit": "turns",
        }
        metrics[f"{base}/first_transfer_turn_median"] = entry
    return metrics


def telecom_metrics(rows: Rows) -> dict[str, dict]:
    """Return `telecom/<agent>/...` metrics for every agent in the rows, as entries of a run record.

    With trials missing or lost to infrastructure, only the coverage and the pessimistic average are there: a
    headline over the trials that happened to finish would be a different benchmark.

    Raises:
        RowError: if a row is damaged.
    """
    metrics: dict[str, dict] = {}
    for agent, own in _by(check_rows(rows, "telecom rows", "telecom"), "agent").items():
        metrics |= _one_telecom_agent(agent, own)
    return metrics


def _record(stage: MetricSink, metrics: Mapping[str, dict]) -> dict[str, dict]:
    for name, entry in metrics.items():
        value = entry["value"]
        stage.metric(name, value, n=entry["n"], seeds=entry["seeds"], ci95=entry["ci95"], unit=entry["unit"])
    return dict(metrics)


def record_desk(stage: MetricSink, rows: Rows) -> dict[str, dict]:
    """Put the desk metrics of the rows into the stage's record and return them."""
    return _record(stage, desk_metrics(rows))


def record_telecom(stage: MetricSink, rows: Rows) -> dict[str, dict]:
    """Put the telecom metrics of the rows into the stage's record and return them."""
    return _record(stage, telecom_metrics(rows))
