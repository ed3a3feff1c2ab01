"""Tables of numbers as tables for readers, as Markdown and as JSON files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from rlcas_utils.figures import label
from rlcas_utils.records import write_atomic, write_json

DASH = "–"


def cell(line: Mapping[str, Any], name: str, form: str = ".2f") -> str:
    """Return a number with its interval as text, such as `19.36 [18.90, 19.81]`, or a dash.

    Args:
        line: a line of a table of numbers.
        name: the column; its interval is in `<name>_low` and `<name>_high`.
        form: how numbers are written.
    """
    value, low, high = (line.get(key) for key in (name, f"{name}_low", f"{name}_high"))
    if value is None or pd.isna(value):
        return DASH
    interval = "" if low is None or pd.isna(low) else f" [{low:{form}}, {high:{form}}]"
    return f"{value:{form}}{interval}"


def _card_text(line: Mapping[str, Any]) -> str:
    if pd.isna(line.get("published_return", float("nan"))):
        return DASH
    reward, rate, steps = (line[f"published_{k}"] for k in ("return", "resolution_rate", "steps"))
    return f"{reward:.2f} / {rate:.0%} / {steps:.1f}"


def desk_view(table: pd.DataFrame) -> pd.DataFrame:
    """Return the desk table as text; the last columns are the model card's figures and the note."""
    return pd.DataFrame(
        {
            "agent": label(line["agent"]),
            "average reward": cell(line, "return"),
            "resolution rate": cell(line, "resolution_rate"),
            "average steps": cell(line, "steps", ".1f"),
            "parse failures": cell(line, "parse_failure_rate", ".3f"),
            "n": f"{line['tickets']} x {line['seeds']}" if line["tickets"] else DASH,
            "published (reward / resolved / steps)": _card_text(line),
            "note": line["note"],
        }
        for line in table.to_dict("records")
    )


def category_view(table: pd.DataFrame, name: str = "return", form: str = ".1f") -> pd.DataFrame:
    """Return one line per category and one column per agent."""
    lines: dict[str, dict[str, str]] = {}
    for line in table.to_dict("records"):
        row = lines.setdefault(line["category"], {"category": line["category"], "n": str(line["tickets"])})
        row[label(line["agent"])] = cell(line, name, form)
    return pd.DataFrame(list(lines.values())).fillna(DASH)


def difference_view(table: pd.DataFrame) -> pd.DataFrame:
    """Return paired differences as text."""
    return pd.DataFrame(
        {
            "difference": f"{label(line['a'])} minus {label(line['b'])}",
            "reward": cell(line, "return"),
            "resolution rate": cell(line, "resolution_rate", ".3f"),
            "n": str(line["tickets"]),
        }
        for line in table.to_dict("records")
    )


def telecom_view(table: pd.DataFrame) -> pd.DataFrame:
    """Return the telecom table as text, with k written out in the column of tries."""
    lines = []
    for line in table.to_dict("records"):
        counts = line.get("histogram")
        solved = " ".join(str(n) for n in counts.values()) if isinstance(counts, dict) else DASH
        k = "" if pd.isna(line.get("k")) else f"{line['k']:.0f}"
        lines.append(
            {
                "agent": label(line["agent"]),
                "tasks": f"{line['group']} {line['tasks']}",
                "k": k or DASH,
                "avg@k": cell(line, "avg", ".3f"),
                "pass@k": cell(line, "pass_at", ".3f"),
                "pass^k": cell(line, "pass_hat", ".3f"),
                "solved 0..k times": solved,
                "transfer rate": cell(line, "transfer_rate"),
                "first transfer turn": cell(line, "first_transfer_turn", ".0f"),
                "note": line["note"],
            }
        )
    return pd.DataFrame(lines)


def markdown(view: pd.DataFrame) -> str:
    """Return a table of texts as Markdown."""
    header = [str(column) for column in view.columns]
    body = [[str(value).replace("|", "\\|") for value in line] for line in view.to_numpy().tolist()]
    lines = [header, ["---"] * len(header), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def write_tables(json_path: Path, tables: Mapping[str, pd.DataFrame], caption: str) -> Path:
    """Write tables of numbers as one JSON file; missing numbers become null.

    Args:
        json_path: the target.
        tables: name and table of numbers.
        caption: what the tables hold: n, seeds, interval, source of the published figures.
    """
    content: dict[str, Any] = {"caption": caption}
    for name, table in tables.items():
        content[name] = json.loads(table.to_json(orient="records", double_precision=10))
    return write_json(json_path, content)


def write_markdown(path: Path, views: Mapping[str, pd.DataFrame], caption: str) -> Path:
    """Write tables of texts as one Markdown file, a heading over each."""
    parts = [f"### {title}\n\n{markdown(view)}" for title, view in views.items()]
    return write_atomic(path, "\n".join([*parts, caption + "\n"]))
