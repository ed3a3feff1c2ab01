"""One JSON line per training step, kept through a kill: a resumed run overwrites what it repeats."""

import json
import math
import time
from pathlib import Path
from typing import Any

from rlcas_utils.records import write_atomic

FILE = "steps.jsonl"
MAX_LINES = 25  # progress lines per run


def read_steps(folder: Path) -> list[dict[str, Any]]:
    """Returns the logged steps of a training run, in order.

    Args:
        folder: The run's output folder.
    """
    path = folder / FILE
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def keep_until(folder: Path, step: int) -> None:
    """Drops the steps after `step`: a resumed run makes them again.

    Args:
        folder: The run's output folder.
        step: Last finished step of the checkpoint that training goes on from; 0 starts a new log.
    """
    _write(folder, [row for row in read_steps(folder) if row["step"] <= step])


def add_step(folder: Path, row: dict[str, Any]) -> None:
    """Adds a step; NaN becomes null, which JSON has.

    Args:
        folder: The run's output folder.
        row: Must hold "step".
    """
    clean = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
    _write(folder, [*read_steps(folder), clean])


def _write(folder: Path, rows: list[dict[str, Any]]) -> None:
    write_atomic(folder / FILE, "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows))


class StepReport:
    """Gathers the rollout seconds and rows of a step, writes the step, and prints a line now and then."""

    def __init__(self, folder: Path) -> None:
        """Takes the folder of the log."""
        self._folder = folder
        self._lines = 0
        self.start(0, write=False)

    def start(self, done: int, *, write: bool) -> None:
        """Starts the clock.

        Args:
            done: Steps that a checkpoint has already; later ones are dropped from the log.
            write: False on all processes but one.
        """
        if write:
            keep_until(self._folder, done)
        self._first_step = done
        self._begin = self._step_begin = time.monotonic()
        self._rollout_s = 0.0
        self._rows: list[int] = []

    def add_rollout(self, seconds: float, rows: list[int]) -> None:
        """Notes one rollout of the running step.

        Args:
            seconds: How long it took.
            rows: Row number of each group.
        """
        self._rollout_s += seconds
        self._rows += rows

    def finish(self, step: int, total: int, logs: dict[str, Any]) -> None:
        """Writes the step and starts the next.

        Args:
            step: Number of the step, from 1.
            total: Steps of the run.
            logs: What the trainer logs for it.
        """
        now = time.monotonic()
        step_s = now - self._step_begin
        row = {
            "step": step,
            "kl": None,  # both stay empty in a step whose groups are all dead
            "entropy": None,
            **{name: value for name, value in logs.items() if isinstance(value, int | float)},
            "step_s": round(step_s, 3),
            "rollout_s": round(self._rollout_s, 3),
            "update_s": round(step_s - self._rollout_s, 3),
            "rows": self._rows,
        }
        add_step(self._folder, row)
        self._step_begin, self._rollout_s, self._rows = now, 0.0, []
        due = int(step / max(1, total) * MAX_LINES)
        if due > self._lines and row.get("reward") is not None:
            self._lines = due
            left_s = (now - self._begin) / max(1, step - self._first_step) * (total - step)
            print(_line(row, total, left_s), flush=True)


def _line(row: dict[str, Any], total: int, left_s: float) -> str:
    dead = row.get("dead_group_rate") or 0.0
    kl = "" if row.get("kl") is None else f"  KL {row['kl']:.4f}"
    warning = "  WARNING: more than half of the groups are dead" if dead > 0.5 else ""
    reward = f"reward {row['reward']:.2f}  dead groups {dead:.2f}"
    return f"step {row['step']}/{total}  {reward}{kl}  {left_s:.0f} s left{warning}"
