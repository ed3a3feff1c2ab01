"""Tables of the benchmark as DataFrames of numbers; `views` turns them into text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from rlcas_utils.benchmark.metrics import (
    DESK_UNITS,
    Rows,
    coverage,
    desk_difference,
    desk_estimates,
    histogram,
    pass_estimates,
    telecom_metrics,
)
from rlcas_utils.benchmark.published import published, published_interval
from rlcas_utils.benchmark.rows import DESK_AGENTS, TELECOM_AGENTS
from rlcas_utils.statistics import Estimate

PAIRS = (("sac", "rules"), ("sft", "base"), ("grpo", "sft"), ("grpo", "sac"), ("grpo", "oracle"))


def _columns(name: str, estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.ci95 or (None, None)
    return {name: estimate.value, f"{name}_low": low, f"{name}_high": high}


def desk_table(rows_by_agent: Mapping[str, Rows], notes: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Return the desk benchmark, one line per agent in the course's order.

    Args:
        rows_by_agent: checked desk rows; agents without rows still get a line.
        notes: why an agent has no rows, such as "needs OPENAI_API_KEY".

    Returns:
        Numbers with `_low` and `_high` for the 95 % interval, the card's figures as `published_...`, and
        a note. An agent that played fewer tickets than the others has no numbers, only the note saying so.
    """
    expected = max(len({row["ticket_id"] for row in rows}) for rows in rows_by_agent.values())
    lines = []
    for agent in DESK_AGENTS:
        card = published("desk")["agents"].get(agent, {})
        line = {"agent": agent, "note": (notes or {}).get(agent, "")}
        line |= {f"published_{name}": card.get(name) for name in DESK_UNITS if name in card}
        rows = rows_by_agent.get(agent, ())
        tickets = len({row["ticket_id"] for row in rows})
        line |= {"tickets": tickets, "episodes": len(rows), "seeds": len({row["seed"] for row in rows})}
        if rows and tickets == expected:
            for name, estimate in desk_estimates(rows).items():
                line |= _columns(name, estimate)
        elif rows:
            line["note"] = f"{tickets} of {expected} tickets evaluated: no headline"
        else:
            line["note"] = line["note"] or "not run"
        lines.append(line)
    return pd.DataFrame(lines)


def category_table(rows_by_agent: Mapping[str, Rows]) -> pd.DataFrame:
    """Return return and resolution rate per ticket category and agent, with intervals over the tickets."""
    lines = []
    for agent in [a for a in DESK_AGENTS if a in rows_by_agent]:
        categories = sorted({row["category"] for row in rows_by_agent[agent]})
        for category in categories:
            rows = [row for row in rows_by_agent[agent] if row["category"] == category]
            estimates = desk_estimates(rows)
            line = {"agent": agent, "category": category, "tickets": estimates["return"].n}
            lines.append(line | _columns("return", estimates["return"]))
            lines[-1] |= _columns("resolution_rate", estimates["resolution_rate"])
    return pd.DataFrame(lines)


def difference_table(
    rows_by_agent: Mapping[str, Rows], pairs: Sequence[tuple[str, str]] = PAIRS
) -> pd.DataFrame:
    """Return paired differences over the tickets that both agents played, in return and in resolution rate.

    Args:
        rows_by_agent: checked desk rows.
        pairs: `(a, b)` for `a - b`; pairs with an agent that was not run are left out.
    """
    lines = []
    for a, b in pairs:
        if a in rows_by_agent and b in rows_by_agent:
            line: dict[str, Any] = {"a": a, "b": b}
            for name, field in (("return", "return"), ("resolution_rate", "resolved")):
                estimate = desk_difference(rows_by_agent[a], rows_by_agent[b], field)
                line |= _columns(name, estimate) | {"tickets": estimate.n}
            lines.append(line)
    return pd.DataFrame(lines)


def telecom_table(rows_by_agent: Mapping[str, Rows]) -> pd.DataFrame:
    """Return the telecom benchmark: all tasks, fixable ones and transfer ones, one line each per agent.

    Returns:
        `avg`, `pass_at` and `pass_hat` with intervals over tasks, `k`, histogram, transfer rate, median first
        transfer turn; last, the published line, whose interval is computed from the card's histogram.
    """
    lines = []
    for agent in [a for a in TELECOM_AGENTS if a in rows_by_agent]:
        rows = rows_by_agent[agent]
        groups = {"all": rows, "fixable": [r for r in rows if r["group"] == "fixable"]}
        groups["transfer"] = [r for r in rows if r["group"] == "transfer"]
        lines += [_telecom_line(agent, name, own) for name, own in groups.items() if own]
    return pd.DataFrame([*lines, _published_line()])


def _telecom_line(agent: str, group: str, rows: Rows) -> dict[str, Any]:
    evaluated, expected = coverage(rows)
    line: dict[str, Any] = {"agent": agent, "group": group, "tasks": len({r["task_id"] for r in rows})}
    line |= {"trials": expected, "note": ""}
    if evaluated < expected:
        return line | {"note": f"{evaluated} of {expected} evaluated: no headline"}
    estimates, line["note"] = pass_estimates(rows)
    for name, (key, estimate) in zip(("avg", "pass_at", "pass_hat"), estimates.items(), strict=True):
        line |= _columns(name, estimate)
        line["k"] = int(key[-1])
    metrics = telecom_metrics(rows)
    rate = metrics[f"telecom/{agent}/transfer_rate"]
    turn = metrics.get(f"telecom/{agent}/first_transfer_turn_median", {})
    line |= {"transfer_rate": rate["value"], "first_transfer_turn": turn.get("value")}
    return line | {"histogram": histogram(rows)}


def _published_line() -> dict[str, Any]:
    card = published("telecom")
    figures = card["agents"]["grpo"]
    line = {"agent": "published", "group": "all", "tasks": card["tasks"], "k": card["trials"]}
    line |= {"trials": card["tasks"] * card["trials"], "histogram": figures["histogram"]}
    line |= _columns("avg", published_interval(figures["histogram"])) | {"avg": figures["avg@3"]}
    note = "interval computed here from the card's histogram"
    return line | {"pass_at": figures["pass@3"], "pass_hat": figures["pass^3"], "note": note}
