"""The folder of a stage: one process at a time; emptied when its fingerprint changed, else kept as it is."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rlcas_utils.records import WriteFailed, explained, write_json

STATE_FILE = ".stage.json"
WAIT_S = 15.0  # a kernel whose runner was killed notices it within a second or two, and ends


class StageBusy(RuntimeError):
    """Another process works in the stage's folder; the text says what to do."""


class StageFolder:
    """A folder whose content belongs to one fingerprint.

    Attributes:
        path: The folder; it exists.
        kept: True when an earlier run with the same fingerprint left it, finished or not.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        """Take the folder for this process, and empty it unless it belongs to this fingerprint.

        Raises:
            StageBusy: Another process has it.
        """
        self.path = path
        self._lock = _lock(path)
        self._fingerprint = fingerprint
        self._started = time.monotonic()
        state = self._read_state()
        self.kept = state.get("fingerprint") == fingerprint
        self._earlier_s = float(state["elapsed_s"]) if self.kept else 0.0
        if not self.kept:
            # The state goes first: a deletion cut short must not leave a folder that looks valid.
            (path / STATE_FILE).unlink(missing_ok=True)
            if path.exists():
                shutil.rmtree(path)
            self.note_progress()

    def elapsed_s(self) -> float:
        """Return the seconds spent on this content, those of killed runs up to their last note included."""
        return self._earlier_s + time.monotonic() - self._started

    def note_progress(self) -> None:
        """Write down the seconds so far."""
        state = {"fingerprint": self._fingerprint, "elapsed_s": round(self.elapsed_s(), 3)}
        write_json(self.path / STATE_FILE, state)

    def piece(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return the JSON value of a finished piece, or compute and keep it.

        Args:
            name: File name without ending.
            compute: Called without arguments when the piece is not there or damaged.
        """
        path = self.path / "cache" / f"{name}.json"
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            pass
        except ValueError as error:
            print(f"NOTE: {path.name} is damaged ({error}); this piece is computed again.")
        write_json(path, compute())
        self.note_progress()
        # Read back, so that a fresh run sees what a resumed one sees: lists for tuples, text for keys.
        return json.loads(path.read_text(encoding="utf-8"))

    def release(self) -> None:
        """Let other processes have the folder."""
        self._lock.release(force=True)

    def _read_state(self) -> dict[str, Any]:
        try:
            return json.loads((self.path / STATE_FILE).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}  # nothing valid: the folder is emptied, which is the safe reading


def _lock(path: Path) -> FileLock:
    """Take a stage's lock; the same process may take it again, as when a cell is run twice."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # One lock object per file and process: a second one would wait for the first.
        lock = FileLock(path.with_name(f".{path.name}.lock"), is_singleton=True)
        lock.acquire(timeout=WAIT_S)
    except Timeout:
        raise StageBusy(
            f"Another process works on {path.name} in this run folder; two would spoil each other's files. "
            "Wait for it, or shut down the other kernel (a notebook open in Jupyter?), then run this again."
        ) from None
    except OSError as error:
        raise WriteFailed(f"{path.parent.name}: {explained(error)}") from error
    return lock
