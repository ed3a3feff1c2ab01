"""Two agents on the same episodes: the difference is taken inside each pair, then averaged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rlcas_utils.statistics.intervals import Z95, Estimate, mean_interval


@dataclass(frozen=True)
class PairedDifference:
    """Mean of `a - b` over shared episodes, and the episodes that only one side has."""

    estimate: Estimate
    only_a: tuple = field(default=())
    only_b: tuple = field(default=())


def _keyed(rows: Sequence[Mapping], key: Sequence[str], value: str, side: str) -> dict[tuple, float]:
    keyed: dict[tuple, float] = {}
    for row in rows:
        name = tuple(row[part] for part in key)
        if name in keyed:
            raise ValueError(f"Rows {side} hold {name} twice, so a pair is ambiguous. Drop one.")
        keyed[name] = float(row[value])
    return keyed


def _binary_difference(only_a: float, only_b: float, n: int) -> Estimate:
    """Agresti and Min (2005): half a count is added to each of the four cells, so 0 - 0 keeps a width."""
    more, less, total = only_a + 0.5, only_b + 0.5, n + 2
    centre = (more - less) / total
    half = Z95 * math.sqrt((more + less) - (more - less) ** 2 / total) / total
    low, high = max(-1.0, centre - half), min(1.0, centre + half)
    return Estimate((only_a - only_b) / n, low, high, n, "agresti-min")


def paired_difference(
    rows_a: Sequence[Mapping],
    rows_b: Sequence[Mapping],
    key: Sequence[str] = ("ticket_id", "seed"),
    *,
    value: str = "return",
    unmatched: str = "refuse",
    seed: int = 0,
) -> PairedDifference:
    """Compare two agents on the episodes that both played.

    Args:
        rows_a: episode rows of the first agent.
        rows_b: episode rows of the second agent.
        key: fields that make two episodes the same one; the first is the unit that is resampled.
        value: field to compare; 0/1 or booleans count as success.
        unmatched: "refuse" to compare files that do not cover the same episodes, or "list" to compare the
            shared ones and report the rest.
        seed: of the bootstrap.

    Raises:
        ValueError: if an episode is there twice, nothing is shared, or some are unmatched and refused.
    """
    a, b = _keyed(rows_a, key, value, "a"), _keyed(rows_b, key, value, "b")
    shared = [name for name in a if name in b]
    only_a, only_b = tuple(k for k in a if k not in b), tuple(k for k in b if k not in a)
    if not shared or (unmatched == "refuse" and (only_a or only_b)):
        raise ValueError(
            f"{len(shared)} episodes are shared, {len(only_a)} are only in a {list(only_a[:5])} and "
            f"{len(only_b)} only in b {list(only_b[:5])}; a difference would compare different work. "
            'Run both on the same episodes, or pass unmatched="list".'
        )
    units: dict[object, list[float]] = {}
    for name in shared:
        units.setdefault(name[0], []).append(a[name] - b[name])
    mean_N = np.array([np.mean(differences) for differences in units.values()])
    outcomes = [side[name] for side in (a, b) for name in shared]
    binary = bool(np.isin(outcomes, (0.0, 1.0)).all())
    if binary and (len(units) == len(shared) or np.ptp(mean_N) == 0):
        gained, lost = np.clip(mean_N, 0, None).sum(), np.clip(-mean_N, 0, None).sum()
        estimate = _binary_difference(float(gained), float(lost), len(units))
    else:
        estimate = mean_interval(mean_N, seed, proportion=False)
    return PairedDifference(estimate, only_a, only_b)
