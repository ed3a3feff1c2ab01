"""Episode rows: one JSON line per episode, checked field by field when written and when read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rlcas_utils.records import write_atomic

DESK_AGENTS = ("random", "rules", "oracle", "sac", "base", "sft", "grpo")
DESK_AGENTS += ("gpt_4o_mini", "gemini_2_5_flash", "own_server")
TELECOM_AGENTS = ("always_transfer", "gold", "expert", "base", "sft", "grpo")


class RowError(ValueError):
    """A row file that cannot be used; the text names file, line and field."""


Check = Callable[[Any], str | None]


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _says(test: Callable[[Any], bool], wanted: str) -> Check:
    return lambda value: None if test(value) else wanted


TEXT = _says(lambda v: isinstance(v, str) and bool(v), "a non-empty text")
NUMBER = _says(_is_number, "a finite number")
COUNT = _says(lambda v: _is_int(v) and v >= 0, "a whole number from 0")
POSITIVE = _says(lambda v: _is_int(v) and v >= 1, "a whole number from 1")
FLAG = _says(lambda v: isinstance(v, bool), "true or false")
SHARE = _says(lambda v: _is_number(v) and 0 <= v <= 1, "a number from 0 to 1")
GROUP = _says(lambda v: v in ("transfer", "fixable"), '"transfer" or "fixable"')
TURN = _says(lambda v: v is None or (_is_int(v) and v >= 0), "null or a whole number from 0")
ACTIONS = _says(
    lambda v: isinstance(v, list) and all(a is None or (_is_int(a) and a >= -1) for a in v),
    "a list of action ids (null or -1 for an unusable output)",
)
NUMBERS = _says(
    lambda v: isinstance(v, dict) and all(_is_number(x) for x in v.values()), "an object of finite numbers"
)
COUNTS = _says(
    lambda v: isinstance(v, dict) and all(_is_int(x) and x >= 0 for x in v.values()), "an object of counts"
)

SCHEMAS: dict[str, dict[str, Check]] = {
    "desk": {
        "agent": TEXT,
        "ticket_id": TEXT,
        "category": TEXT,
        "seed": COUNT,
        "return": NUMBER,
        "resolved": FLAG,
        "steps": POSITIVE,
        "parse_failures": COUNT,
        "outcome": TEXT,
        "actions": ACTIONS,
        "signals": NUMBERS,
    },
    "telecom": {
        "agent": TEXT,
        "task_id": TEXT,
        "trial": COUNT,
        "seed": COUNT,
        "reward": SHARE,
        "group": GROUP,
        "num_faults": COUNT,
        "turns": COUNT,
        "end": TEXT,
        "transferred": FLAG,
        "first_transfer_turn": TURN,
        "tool_errors": COUNTS,
        "partial": NUMBER,
        "customer": TEXT,
        "policy_arm": TEXT,
    },
}
IDENTITY = {"desk": ("agent", "ticket_id", "seed"), "telecom": ("agent", "task_id", "trial")}


def row_kind(row: Mapping[str, Any]) -> str:
    """Return "desk" or "telecom"; telecom rows are the ones with a `task_id`."""
    return "telecom" if "task_id" in row else "desk"


def _check_row(row: Any, kind: str, where: str) -> None:
    if not isinstance(row, Mapping):
        raise RowError(f"{where}: expected a JSON object, found {type(row).__name__}. {_remedy(kind)}")
    for field, check in SCHEMAS[kind].items():
        if field not in row:
            raise RowError(f"{where}: field {field!r} is missing. {_remedy(kind)}")
        wanted = check(row[field])
        if wanted:
            seen = repr(row[field])[:60]
            raise RowError(f"{where}: field {field!r} is {seen}, expected {wanted}. {_remedy(kind)}")
    if kind == "desk" and row["parse_failures"] > row["steps"]:
        raise RowError(
            f"{where}: field 'parse_failures' is {row['parse_failures']} in {row['steps']} steps; every "
            f"unusable output counts a step. {_remedy(kind)}"
        )


def _remedy(kind: str) -> str:
    return f"A table with this {kind} row would be wrong; run the notebook that writes the file again."


def check_rows(rows: Iterable[Any], name: str, kind: str | None = None) -> list[dict]:
    """Check rows and return them as a list.

    Args:
        rows: episode rows.
        name: how errors call their source, such as the file name.
        kind: "desk" or "telecom"; None looks at the first row.

    Raises:
        RowError: for no rows, a wrong or missing field, or one episode twice.
    """
    checked: list[dict] = []
    lines: dict[tuple, int] = {}
    for number, row in enumerate(rows, start=1):
        kind = kind or (row_kind(row) if isinstance(row, Mapping) else "desk")
        where = f"{name}, line {number}"
        _check_row(row, kind, where)
        identity = tuple(row[field] for field in IDENTITY[kind])
        if identity in lines:
            raise RowError(f"{where}: {identity} was on line {lines[identity]} already. {_remedy(kind)}")
        lines[identity] = number
        checked.append(dict(row))
    if not checked:
        raise RowError(f"{name} holds no rows, so nothing can be averaged. Run the notebook that writes it.")
    return checked


def _parse(path: Path) -> Iterable[Any]:
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise RowError(
                f"{path.name}, line {number}: not JSON ({error}); the file was cut short or edited. "
                "Run the notebook that writes it again."
            ) from error


def read_rows(path: Path | str, kind: str | None = None) -> list[dict]:
    """Read and check a JSONL file of episode rows.

    Args:
        path: the file.
        kind: "desk" or "telecom"; None goes by the file name's first word, then by the first row.

    Raises:
        RowError: if a line is damaged; the text names file, line and field.
        FileNotFoundError: if there is no such file.
    """
    path = Path(path)
    first = path.name.split("_")[0]
    return check_rows(_parse(path), path.name, kind or (first if first in SCHEMAS else None))


def write_rows(path: Path | str, rows: Iterable[Mapping[str, Any]], kind: str | None = None) -> Path:
    """Check rows and write them as JSONL, whole or not at all.

    Args:
        path: the target.
        rows: episode rows of one agent.
        kind: "desk" or "telecom"; None looks at the rows.

    Raises:
        RowError: if a row is not complete; nothing is written then.
    """
    path = Path(path)
    checked = check_rows(rows, path.name, kind)
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in checked]
    return write_atomic(path, "\n".join(lines) + "\n")
