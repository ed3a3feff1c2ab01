"""What a visitor may send: how much text, and one action at a time."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

MAX_QUERY, MAX_MESSAGE = 800, 600


class Refused(ValueError):
    """Something that cannot be done now; the text is shown to the visitor."""


class Stopped(RuntimeError):
    """The visitor pressed Stop."""


def cleaned(text: str | None, most: int) -> str:
    """Return a visitor's text without control characters.

    Args:
        text: As it came.
        most: Characters that are taken.

    Raises:
        Refused: Nothing is left, or there are more characters than `most`.
    """
    kept = "".join(
        c for c in text or "" if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs")
    ).strip()
    if not kept:
        raise Refused("There is no text yet. Write something first.")
    if len(kept) > most:
        raise Refused(f"{len(kept):,} characters; at most {most} are taken. Shorten the text.")
    return kept


class Turn:
    """One visitor's place: a second click is refused while one is worked on, and Stop reaches that one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stop = threading.Event()

    @contextmanager
    def taken(self) -> Iterator[threading.Event]:
        """Hold the place; yields the event that Stop sets.

        Raises:
            Refused: The last click of this visitor is still being worked on.
        """
        if not self._lock.acquire(blocking=False):
            raise Refused("The last click is still being worked on. Wait, or press Stop.")
        self.stop.clear()
        try:
            yield self.stop
        finally:
            self._lock.release()
