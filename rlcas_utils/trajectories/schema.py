"""One expert episode as one JSON line: the schema, and a reader that names the damaged field."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rlcas_utils.desk.actions import ACTIONS
from rlcas_utils.desk.rewards import SIGNAL_NAMES
from rlcas_utils.desk.rules import INTENTS
from rlcas_utils.records import write_atomic

SCHEMA = "rlcas-trajectory/1"


class TrajectoryError(ValueError):
    """A line that is not a valid trajectory."""


@dataclasses.dataclass(frozen=True)
class Step:
    """One action and what came back.

    Attributes:
        action: Action id.
        reward: Reward of the step, the sum of its signals.
        signals: All reward signals by name.
        result: Facts that the action revealed.
        text: The same in one line, as a language model reads it.
    """

    action: int
    reward: float
    signals: dict[str, float]
    result: dict[str, Any]
    text: str


@dataclasses.dataclass(frozen=True)
class Trajectory:
    """One whole episode.

    Attributes:
        ticket_id: Ticket played.
        category: Its category; for balancing and reports only, the agent never saw it.
        intent: Kind of request in the handbook; says which facts a reason names, the agent never saw it.
        template_id: Template the query was made from.
        agent: Name of the agent.
        seed: Seed of the agent's choices.
        query: The customer's text.
        steps: Actions with their results, in order.
        total_reward: Undiscounted return (field "return" in the file).
        resolved: True if the ending was the right one.
        truncated: True if the step limit ended the episode.
        outcome: How the episode ended, in the desk's words.
    """

    ticket_id: str
    category: str
    intent: str
    template_id: str
    agent: str
    seed: int
    query: str
    steps: tuple[Step, ...]
    total_reward: float
    resolved: bool
    truncated: bool
    outcome: str

    @property
    def actions(self) -> tuple[int, ...]:
        """Action ids in order."""
        return tuple(step.action for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        """Return the line's JSON object."""
        content = dataclasses.asdict(self)
        content["return"] = content.pop("total_reward")
        content["steps"] = list(content["steps"])
        return {"schema": SCHEMA, **content}


def write_trajectories(path: Path, trajectories: Iterable[Trajectory]) -> int:
    """Write one JSON line per trajectory, atomically.

    Args:
        path: File to write.
        trajectories: What to write.

    Returns:
        Number of lines.
    """
    lines = [json.dumps(t.to_json(), ensure_ascii=False, allow_nan=False) for t in trajectories]
    write_atomic(path, "".join(line + "\n" for line in lines))
    return len(lines)


def read_trajectories(path: Path) -> list[Trajectory]:
    """Read and validate a file of trajectories.

    Args:
        path: File written by `write_trajectories`.

    Returns:
        The trajectories in file order.

    Raises:
        TrajectoryError: If a line is damaged; names file, line and field.
    """
    trajectories = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                trajectories.append(parse_trajectory(json.loads(line)))
            except (json.JSONDecodeError, TrajectoryError) as error:
                raise TrajectoryError(
                    f"{path.name} line {number}: {error}. Nothing was read from the file; "
                    "run the notebook that writes it again."
                ) from error
    return trajectories


def parse_trajectory(content: Any) -> Trajectory:
    """Build a trajectory from a line's JSON value.

    Args:
        content: Decoded JSON.

    Returns:
        The trajectory.

    Raises:
        TrajectoryError: If a field is missing, unknown or of the wrong kind; names it.
    """
    fields = _object(content, "line", _TRAJECTORY_FIELDS)
    steps = tuple(
        Step(**_object(step, f"steps[{i}]", _STEP_FIELDS)) for i, step in enumerate(fields.pop("steps"))
    )
    for i, step in enumerate(steps):
        if abs(sum(step.signals.values()) - step.reward) > 1e-6:
            raise TrajectoryError(
                f"field steps[{i}].reward is {step.reward}, its signals sum to {sum(step.signals.values())}"
            )
    total_reward = fields.pop("return")
    if abs(sum(step.reward for step in steps) - total_reward) > 1e-6:
        raise TrajectoryError(f"field return is {total_reward}, its steps sum to another value")
    del fields["schema"]
    return Trajectory(**fields, steps=steps, total_reward=total_reward)


Rule = tuple[str, Callable[[Any], bool]]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_TEXT: Rule = ("non-empty text", lambda v: isinstance(v, str) and bool(v))
_FLAG: Rule = ("true or false", lambda v: isinstance(v, bool))
_NUMBER: Rule = ("a finite number", _number)
_TRAJECTORY_FIELDS: dict[str, Rule] = {
    "schema": (repr(SCHEMA), lambda v: v == SCHEMA),
    "ticket_id": _TEXT,
    "category": _TEXT,
    "intent": (f"one of {', '.join(INTENTS)}", lambda v: v in INTENTS),
    "template_id": _TEXT,
    "agent": _TEXT,
    "seed": ("a whole number", lambda v: type(v) is int),
    "query": _TEXT,
    "steps": ("a list with at least one step", lambda v: isinstance(v, list) and bool(v)),
    "return": _NUMBER,
    "resolved": _FLAG,
    "truncated": _FLAG,
    "outcome": _TEXT,
}
_STEP_FIELDS: dict[str, Rule] = {
    "action": (f"an action id 0-{len(ACTIONS) - 1}", lambda v: type(v) is int and 0 <= v < len(ACTIONS)),
    "reward": _NUMBER,
    "signals": (
        f"an object with the {len(SIGNAL_NAMES)} signals of the desk as numbers",
        lambda v: isinstance(v, dict) and v.keys() == set(SIGNAL_NAMES) and all(map(_number, v.values())),
    ),
    "result": ("an object", lambda v: isinstance(v, dict)),
    "text": ("text", lambda v: isinstance(v, str)),
}


def _object(content: Any, where: str, rules: dict[str, Rule]) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise TrajectoryError(f"field {where} is {type(content).__name__}, expected an object")
    prefix = "" if where == "line" else f"{where}."
    for name in rules.keys() - content.keys():
        raise TrajectoryError(f"field {prefix}{name} is missing")
    for name in content.keys() - rules.keys():
        raise TrajectoryError(f"field {prefix}{name} is not part of the schema {SCHEMA}")
    for name, (expected, accepts) in rules.items():
        if not accepts(content[name]):
            raise TrajectoryError(f"field {prefix}{name} is {content[name]!r:.60}, expected {expected}")
    return dict(content)
