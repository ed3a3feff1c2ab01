"""The figures that the two rebuilt model cards published, with their source."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from rlcas_utils.config import project_root
from rlcas_utils.statistics import Estimate, cluster_mean_interval


@cache
def published(benchmark: str) -> dict[str, Any]:
    """Return what a model card says about a benchmark.

    Args:
        benchmark: "desk" or "telecom".

    Returns:
        `source`, `url`, `caveat` and `agents`: for each agent its figures under this course's names.
    """
    text = (project_root() / "data" / "published.json").read_text(encoding="utf-8")
    return json.loads(text)[benchmark]


def expand_histogram(histogram: dict[str, int]) -> list[list[float]]:
    """Return the trials of each task behind a histogram such as `{"0/3": 25, "3/3": 10}`.

    Returns:
        One list per task with ones for solved trials and zeros for the others.
    """
    tasks = []
    for name, count in histogram.items():
        solved, trials = (int(part) for part in name.split("/"))
        tasks += [[1.0] * solved + [0.0] * (trials - solved)] * count
    return tasks


def published_interval(histogram: dict[str, int], seed: int = 0) -> Estimate:
    """Return the average of a published histogram with the interval that the card left out: over tasks."""
    return cluster_mean_interval(expand_histogram(histogram), seed, proportion=True)
