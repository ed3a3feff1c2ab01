"""What the runner shows: one line per notebook, redrawn in a terminal, printed once when nobody watches."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.table import Table

HEARTBEAT_S = 60.0


@dataclass
class Line:
    """The state of one notebook.

    Attributes:
        stem: Notebook.
        reference_s: Seconds of the reference run, or None when there is none.
        state: "waiting", "running", "done", "finished before", "stopped" or "failed".
        time_s: Seconds it took.
        cells: Code and text cells of the notebook.
        cell: Number of the cell that runs.
        last_output: Last line that the notebook printed.
    """

    stem: str
    reference_s: float | None
    state: str = "waiting"
    time_s: float = 0.0
    cells: int = 0
    cell: int = 0
    last_output: str = ""


class Board:
    """The lines of a run; use it as a context manager, so that the terminal is left clean."""

    def __init__(self, references: dict[str, float | None], console: Console | None = None) -> None:
        """Start with every notebook waiting.

        Args:
            references: Seconds of the reference run by notebook, None where unknown.
            console: Where to show it; standard output unless told otherwise.
        """
        self.lines = {stem: Line(stem, seconds) for stem, seconds in references.items()}
        self._console = console or Console(file=sys.stdout)
        self._current: Line | None = None
        self._started = 0.0
        self._stop = threading.Event()
        # Last, because it draws the table at once.
        self._live = Live(get_renderable=self._table, console=self._console, refresh_per_second=2)

    def __enter__(self) -> Board:
        """Begin to show."""
        if self._console.is_terminal:
            self._live.start()
        else:
            threading.Thread(target=self._heartbeat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Show the last state and stop."""
        self._stop.set()
        if self._console.is_terminal:
            self._live.stop()

    def start(self, stem: str, cells: int) -> None:
        """Say that a notebook runs now."""
        self._current = self.lines[stem]
        self._current.state, self._current.cells = "running", cells
        self._started = time.monotonic()
        self._say(f"{stem}: running, {self.remaining()} left in all")

    def end(self, stem: str, state: str) -> None:
        """Say that a notebook is done, finished before or failed."""
        line = self.lines[stem]
        if line is self._current:
            line.time_s = time.monotonic() - self._started
        line.state, self._current = state, None
        self._say(f"{stem}: {state}" + (f", {duration(line.time_s)}" if line.time_s else ""))

    def at_cell(self, number: int | None) -> None:
        """Note which cell of the source notebook runs; None for a cell that papermill put in."""
        if self._current and number is not None:
            self._current.cell = number

    def write(self, text: str) -> None:
        """Take what the running notebook prints; the last line is shown."""
        printed = [line.strip() for line in text.splitlines() if line.strip()]
        if self._current and printed:
            self._current.last_output = printed[-1][:120]

    def flush(self) -> None:
        """Do nothing; papermill asks files for it."""

    def remaining(self) -> str:
        """Return the time that is left, or "unknown time" without a reference run of each notebook.

        The reference is scaled by how this machine did on the notebooks it has finished.
        """
        left = 0.0
        scale = self._pace()
        for line in self.lines.values():
            if line.state not in ("waiting", "running"):
                continue
            if line.reference_s is None:
                return "unknown time"
            spent = time.monotonic() - self._started if line.state == "running" else 0.0
            left += max(scale * line.reference_s - spent, 0.0)
        return f"about {duration(left)}"

    def _pace(self) -> float:
        done = [line for line in self.lines.values() if line.state == "done" and line.reference_s]
        return sum(line.time_s for line in done) / sum(line.reference_s for line in done) if done else 1.0

    def _say(self, text: str) -> None:
        if not self._console.is_terminal:
            print(text, file=self._console.file, flush=True)

    def _heartbeat(self) -> None:
        while not self._stop.wait(HEARTBEAT_S):
            line = self._current
            if line:
                spent = duration(time.monotonic() - self._started)
                self._say(f"{line.stem}: {spent}, cell {line.cell}/{line.cells}. {line.last_output}")

    def _table(self) -> Table:
        left = f"{self.remaining()} left" if self._current else None
        table = Table(box=None, padding=(0, 2, 0, 0), caption=left, caption_justify="left")
        for heading in ("notebook", "state", "time", "reference", "now"):
            table.add_column(heading, no_wrap=True, overflow="ellipsis")
        for line in self.lines.values():
            running = line.state == "running"
            spent = time.monotonic() - self._started if running else line.time_s
            reference = "unknown" if line.reference_s is None else duration(line.reference_s)
            now = f"cell {line.cell}/{line.cells}  {line.last_output}" if running else ""
            table.add_row(line.stem, line.state, duration(spent) if spent else "", reference, now)
        return table


def duration(seconds: float) -> str:
    """Return seconds as people say them: "42 s", "3 min 5 s", "2 h 10 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
