"""Reads the log of a fine-tuning: how many tokens were seen, how fast, over all parts of a resumed run."""

import itertools
from collections.abc import Sequence

import pandas as pd


def throughput(log: Sequence[dict[str, float]]) -> tuple[float, float]:
    """Return (tokens per second, seconds) of training, evaluation left out.

    Args:
        log: From ``train_or_resume``.
    """
    steps = [row for row in log if "loss" in row]
    seconds = sum(row["elapsed_s"] for row in steps)
    return tokens_seen(steps) / seconds, seconds


def curves(log: Sequence[dict[str, float]]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Split a log into what a learning curve shows.

    Args:
        log: From ``train_or_resume``.

    Returns:
        Frames with columns ``step``, ``loss``; ``step``, ``eval_loss``; ``step``, ``minutes`` (of training
        so far, evaluation left out), ``mean``, ``low``, ``high`` of the returns played in between.
    """
    seconds = list(itertools.accumulate(row["elapsed_s"] if "loss" in row else 0.0 for row in log))
    played = [
        {"step": row["step"], "minutes": at / 60}
        | {end: row[f"played_{end}"] for end in ("mean", "low", "high")}
        for row, at in zip(log, seconds, strict=True)
        if "played_mean" in row
    ]
    trained, held_out = (
        pd.DataFrame([row for row in log if name in row], columns=["step", name])
        for name in ("loss", "eval_loss")
    )
    return trained, held_out, pd.DataFrame(played, columns=["step", "minutes", "mean", "low", "high"])


def tokens_seen(steps: Sequence[dict[str, float]]) -> int:
    """Add up the tokens of all parts of a training; TRL's own count starts anew in a resumed part.

    Args:
        steps: Log rows with a loss, in order.
    """
    counts = [int(row.get("num_tokens", 0)) for row in steps]
    ends = [now for now, after in itertools.pairwise([*counts, 0]) if after < now]
    return sum(ends)
