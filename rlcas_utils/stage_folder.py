"""The folder of a stage: emptied when its fingerprint changed, else kept with the seconds spent so far."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from rlcas_utils.records import write_json

STATE_FILE = ".stage.json"


class StageFolder:
    """A folder whose content belongs to one fingerprint.

    Attributes:
        path: The folder; it exists.
        kept: True when an earlier run with the same fingerprint left it, finished or not.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        """Empty the folder unless it belongs to this fingerprint."""
        self.path = path
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

    def _read_state(self) -> dict[str, Any]:
        try:
            return json.loads((self.path / STATE_FILE).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}  # nothing valid: the folder is emptied, which is the safe reading
