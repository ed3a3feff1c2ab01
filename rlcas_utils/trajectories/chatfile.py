"""Chat samples on disk: one JSON line each, checked on the way in and out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rlcas_utils.desk.actions import ACTIONS
from rlcas_utils.parsing import Parsed, parse_action
from rlcas_utils.records import write_atomic
from rlcas_utils.trajectories.rendering import SCHEMA
from rlcas_utils.trajectories.schema import TrajectoryError

FIELDS = {
    "schema": str,
    "messages": list,
    "ticket_id": str,
    "category": str,
    "template_id": str,
    "return": float,
}


def check_chat(row: Any) -> str | None:
    """Say what is wrong with a chat sample, or None.

    Args:
        row: Decoded JSON line.

    Returns:
        A sentence that names the field, or None for a sound row.
    """
    if not isinstance(row, dict) or row.keys() != FIELDS.keys():
        found = sorted(row) if isinstance(row, dict) else row
        return f"the fields are {found!r:.80}, expected {sorted(FIELDS)}"
    for name, kind in FIELDS.items():
        if not isinstance(row[name], kind):
            return f"field {name} is {row[name]!r:.60}, expected {kind.__name__}"
    if row["schema"] != SCHEMA:
        return f"field schema is {row['schema']!r}, expected {SCHEMA!r}"
    return _check_messages(row["messages"])


def write_chats(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write chat samples atomically.

    Args:
        path: File to write.
        rows: Samples from `to_chat`.

    Returns:
        Number of lines.

    Raises:
        TrajectoryError: If a row is unsound.
    """
    lines = []
    for number, row in enumerate(rows, start=1):
        _refuse(check_chat(row), path, number)
        lines.append(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
    write_atomic(path, "".join(lines))
    return len(lines)


def read_chats(path: Path) -> list[dict[str, Any]]:
    """Read and check chat samples.

    Args:
        path: File written by `write_chats`.

    Returns:
        The samples in file order.

    Raises:
        TrajectoryError: If a line is damaged; names file, line and field.
    """
    rows = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                _refuse(f"not JSON ({error})", path, number)
            _refuse(check_chat(row), path, number)
            rows.append(row)
    return rows


def _refuse(problem: str | None, path: Path, number: int) -> None:
    if problem is not None:
        raise TrajectoryError(
            f"{path.name} line {number}: {problem}. A model trained on it would learn the damage; "
            "run notebook 03_trajectory_filtering again."
        )


def _check_messages(messages: list[Any]) -> str | None:
    if len(messages) < 3 or len(messages) % 2 == 0:
        return f"field messages has {len(messages)} entries, expected system, user and then whole turns"
    for i, message in enumerate(messages):
        expected = "system" if i == 0 else "user" if i % 2 else "assistant"
        if not isinstance(message, dict) or message.keys() != {"role", "content"}:
            return f"field messages[{i}] is {message!r:.60}, expected role and content"
        if message["role"] != expected or not isinstance(message["content"], str) or not message["content"]:
            return f"field messages[{i}] has role {message['role']!r}, expected {expected!r} with some text"
        if expected == "assistant":
            answer = parse_action(message["content"], len(ACTIONS))
            if not isinstance(answer, Parsed) or answer.repaired:
                return f"field messages[{i}].content breaks the output contract: {message['content']!r:.60}"
    return None
