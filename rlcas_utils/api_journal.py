"""An append-only file of finished episodes: an interrupted run with hosted models loses no paid work."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any


class Journal:
    """One JSON object per line, each on disk before `append` returns.

    An entry is an episode row, or an episode that was lost to the provider: it has the field `lost` with the
    reason and is played again by the next run, but its cost stays counted.

    Attributes:
        path: the file.
        entries: all entries, those of earlier runs first.
    """

    def __init__(self, path: Path) -> None:
        """Read what earlier runs wrote; a line that a kill cut short is dropped."""
        self.path = path
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes() if path.is_file() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            os.truncate(path, len(whole))
        self.entries: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Entries of episodes that were played to their end."""
        return [entry for entry in self.entries if not entry.get("lost")]

    def append(self, entry: dict[str, Any]) -> None:
        """Write one entry through to the disk."""
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n"
        with self._lock, self.path.open("ab") as file:
            file.write(line.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
            self.entries.append(json.loads(line))
