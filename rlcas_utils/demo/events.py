"""How clicks become work: errors become sentences, and anything unexpected stays out of the page."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from rlcas_utils.api_usage import ApiError
from rlcas_utils.demo.limits import Refused, Stopped
from rlcas_utils.viewer.page import esc

PAUSE_S = 0.35  # between the rounds of agents that answer at once, so that they can be followed


def told(words: str, bad: bool = False) -> str:
    """Return a line for the status area."""
    return f'<div class="rv" role="status"><p class="{"bad" if bad else "soft"}">{esc(words)}</p></div>'


def explained(work: Callable[[], Any]) -> str:
    """Do something; return "" or why it could not be done, fit for a visitor's eyes."""
    try:
        work()
    except Stopped:
        return "Stopped."
    except (Refused, ApiError) as error:
        return str(error)
    except Exception:
        logging.getLogger(__name__).exception("a click failed")
        return "This failed; the terminal of the demo says why."
    return ""


def watched(work: Callable[[], Any], tick_s: float = 1.0) -> Iterator[tuple[int, str | None]]:
    """Do something slow in a thread and report while it runs.

    Args:
        work: What to do.
        tick_s: Seconds between reports.

    Yields:
        (seconds so far, None) while it runs, then once (seconds, "" or what went wrong).
    """
    import threading

    result: list[str] = []
    thread = threading.Thread(target=lambda: result.append(explained(work)), daemon=True)
    start = time.monotonic()
    thread.start()
    while True:
        thread.join(tick_s)
        seconds = int(time.monotonic() - start)
        if not thread.is_alive():
            yield seconds, result[0]
            return
        yield seconds, None
