"""Reads the log of a fine-tuning: how many tokens were seen, how fast, over all parts of a resumed run."""

import itertools
from collections.abc import Sequence


def throughput(log: Sequence[dict[str, float]]) -> tuple[float, float]:
    """Return (tokens per second, seconds) of training, evaluation left out.

    Args:
        log: From ``train_or_resume``.
    """
    steps = [row for row in log if "loss" in row]
    seconds = sum(row["elapsed_s"] for row in steps)
    return tokens_seen(steps) / seconds, seconds


def tokens_seen(steps: Sequence[dict[str, float]]) -> int:
    """Add up the tokens of all parts of a training; TRL's own count starts anew in a resumed part.

    Args:
        steps: Log rows with a loss, in order.
    """
    counts = [int(row.get("num_tokens", 0)) for row in steps]
    ends = [now for now, after in itertools.pairwise([*counts, 0]) if after < now]
    return sum(ends)
