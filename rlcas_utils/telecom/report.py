"""What the rows of one agent say beyond its score: by number of faults, by mistake, by ending, by flag.

Every function takes the rows of one agent with one customer and one policy arm. Another customer or another
policy text is another test, so rows of two of them are refused instead of averaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rlcas_utils.statistics import Estimate, cluster_mean_interval
from rlcas_utils.telecom.endings import ENDINGS
from rlcas_utils.telecom.scoring import FLAGS

Rows = Sequence[Mapping[str, Any]]


def setting(rows: Rows) -> dict[str, str]:
    """The agent, the customer and the policy arm of these rows.

    Raises:
        ValueError: There are several of one of them, or no rows.
    """
    found = {field: sorted({row[field] for row in rows}) for field in ("agent", "customer", "policy_arm")}
    for field, values in found.items():
        if len(values) != 1:
            raise ValueError(
                f"rows hold {len(values)} values of {field} ({', '.join(values) or 'none'}); an average over "
                "them is no measurement of anything. Report each one apart."
            )
    return {field: values[0] for field, values in found.items()}


def summary(rows: Rows) -> str:
    """How the episodes of one agent went, in one line: length, endings, the most frequent mistakes."""
    who = setting(rows)["agent"]
    ends = dict(Counter(row["end"] for row in rows))
    mistakes = {line["kind"]: line["count"] for line in error_table(rows)[:4]}
    turns = sum(row["turns"] for row in rows) / len(rows)
    return f"{who}: {turns:.1f} turns; ends {ends}; mistakes {mistakes}"


def solved(rows: Rows, group: str, seed: int = 0) -> Estimate:
    """Share of attempts at one group's tasks that were solved, with an interval over tasks.

    Args:
        rows: Rows of one agent; episodes lost to a server do not count.
        group: "fixable" or "transfer".
        seed: Of the bootstrap.
    """
    setting(rows)
    by_task: dict[str, list[float]] = {}
    for row in rows:
        if row["group"] == group and not row["lost"]:
            by_task.setdefault(row["task_id"], []).append(row["reward"])
    return cluster_mean_interval(list(by_task.values()), seed, proportion=True)


def fault_table(rows: Rows) -> list[dict[str, Any]]:
    """Share of attempts solved by number of faults, with 95 % intervals over tasks.

    Returns:
        One line per number of faults: `faults, tasks, attempts, solved, solved_low, solved_high`.
    """
    setting(rows)
    lines = []
    for number in sorted({row["num_faults"] for row in rows}):
        own = [row for row in rows if row["num_faults"] == number]
        by_task: dict[str, list[float]] = {}
        for row in own:
            by_task.setdefault(row["task_id"], []).append(float(row["reward"] >= 1.0))
        estimate = cluster_mean_interval(list(by_task.values()), proportion=True)
        line = {"faults": number, "tasks": len(by_task), "attempts": len(own), "solved": estimate.value}
        lines.append(line | {"solved_low": estimate.low, "solved_high": estimate.high})
    return lines


def error_table(rows: Rows) -> list[dict[str, Any]]:
    """Mistakes by kind, the most frequent first.

    Returns:
        One line per kind: `kind, count, per_100_turns, episodes` (share of episodes with at least one).
    """
    setting(rows)
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update(row["tool_errors"])
    turns = sum(row["turns"] for row in rows)
    return [
        {
            "kind": kind,
            "count": count,
            "per_100_turns": 100 * count / turns,
            "episodes": sum(row["tool_errors"].get(kind, 0) > 0 for row in rows) / len(rows),
        }
        for kind, count in counts.most_common()
        if count
    ]


def ending_table(rows: Rows) -> list[dict[str, Any]]:
    """How episodes ended: every ending there is, with its meaning and how often it came.

    Raises:
        ValueError: A row ends in a way that `endings.ENDINGS` does not list.
    """
    setting(rows)
    counts = Counter(row["end"] for row in rows)
    unknown = sorted(set(counts) - set(ENDINGS))
    if unknown:
        raise ValueError(f"rows end as {', '.join(unknown)}, which is not in ENDINGS. Play them again.")
    return [
        {"end": name, "episodes": counts[name], "scored": ending.scored, "meaning": ending.meaning}
        for name, ending in ENDINGS.items()
    ]


def flag_table(rows: Rows) -> list[dict[str, Any]]:
    """Faults on the benchmark's side, beside the reward and not instead of it.

    Returns:
        One line per flag: `flag, episodes, meaning`.
    """
    setting(rows)
    counts = Counter(flag for row in rows for flag in row["flags"])
    return [{"flag": name, "episodes": counts[name], "meaning": meaning} for name, meaning in FLAGS.items()]


def breakdown(rows_by_agent: Mapping[str, Rows]) -> dict[str, dict[str, dict[Any, Any]]]:
    """All four tables with one column per agent, as text and numbers to show.

    Args:
        rows_by_agent: Rows of each agent.

    Returns:
        For each title: agent, then line, then entry. `pandas.DataFrame` takes each table as it is.
    """
    tables = {
        "solved, by number of faults": (fault_table, "faults", _solved_text),
        "mistakes per 100 turns": (error_table, "kind", lambda line: round(line["per_100_turns"], 1)),
        "episodes, by ending": (ending_table, "end", lambda line: line["episodes"]),
        "episodes, by flag": (flag_table, "flag", lambda line: line["episodes"]),
    }
    return {
        title: {
            agent: {line[key]: entry(line) for line in table(rows)} for agent, rows in rows_by_agent.items()
        }
        for title, (table, key, entry) in tables.items()
    }


def _solved_text(line: Mapping[str, Any]) -> str:
    return f"{line['solved']:.2f} [{line['solved_low']:.2f}, {line['solved_high']:.2f}]"
