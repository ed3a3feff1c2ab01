"""Means and rates with 95 % intervals, with the task as the unit that is resampled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Z95 = 1.959963984540054
# Student's t, 97.5 %, for 1, 2, ... degrees of freedom.
T95 = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060)
FEW = len(T95) + 1  # up to so many values the bootstrap, which only sees those, is far too sure


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval.

    Attributes:
        value: the estimate, in the unit of the data.
        low: lower end of the interval; NaN where one observation gives none.
        high: upper end of the interval.
        n: number of independent units behind it (tasks, tickets), not of trials.
        method: how the interval was made.
    """

    value: float
    low: float
    high: float
    n: int
    method: str

    @property
    def ci95(self) -> list[float] | None:
        """`[low, high]` for a record, or None where no interval exists."""
        return [self.low, self.high] if math.isfinite(self.low) and math.isfinite(self.high) else None

    def metric(self, unit: str = "", seeds: Sequence[int] = ()) -> dict:
        """Return the estimate as one entry of a run record's `metrics`."""
        return {"value": self.value, "n": self.n, "seeds": list(seeds), "ci95": self.ci95, "unit": unit}


def wilson(successes: float, n: int) -> Estimate:
    """Return a proportion with Wilson's score interval, which keeps a width at 0 and at n successes.

    Args:
        successes: number of successes, 0 to n (a sum of fractions is allowed).
        n: number of independent trials, at least 1.

    Raises:
        ValueError: if the counts are impossible.

    Source: Wilson (1927), Probable inference, the law of succession, and statistical inference.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(
            f"{successes} successes of {n} is no proportion; it needs 0 <= successes <= n, n >= 1."
        )
    p = successes / n
    denominator = 1 + Z95**2 / n
    centre = (p + Z95**2 / (2 * n)) / denominator
    half = Z95 * math.sqrt(p * (1 - p) / n + Z95**2 / (4 * n * n)) / denominator
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Estimate(p, low, high, n, "wilson")


def _checked(values: Sequence[float] | np.ndarray, what: str) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{what} has shape {array.shape}; a mean needs a flat list of numbers.")
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{what}[{bad}] is {array[bad]}; there is no mean. Find the damaged episode.")
    return array


def resampled_means(values_N: np.ndarray, seed: int, resamples: int = 4000) -> np.ndarray:
    """Return the means of bootstrap samples: N units drawn from N with replacement, again and again.

    Args:
        values_N: one number per independent unit.
        seed: of the draws.
        resamples: how many samples are drawn.

    Returns:
        Their means, shape (resamples,).

    Source: Efron (1979), Bootstrap methods: another look at the jackknife, section 2.
    """
    rng = np.random.default_rng(seed)
    index_RN = rng.integers(0, len(values_N), size=(resamples, len(values_N)))
    return np.asarray(values_N)[index_RN].mean(axis=1)


def _percentiles(means_R: np.ndarray) -> tuple[float, float]:
    low, high = np.percentile(means_R, [2.5, 97.5])
    return float(low), float(high)


def mean_interval(values: Sequence[float], seed: int = 0, *, proportion: bool | None = None) -> Estimate:
    """Return the mean of independent values with a 95 % interval.

    Args:
        values: one number per independent unit.
        seed: of the bootstrap; the same seed gives the same interval.
        proportion: True for rates between 0 and 1, False for other quantities, None to decide: values that
            are all 0 or 1 are a proportion and get Wilson's interval, which always has a width.

    Returns:
        The estimate. A single number has no interval (NaN); equal numbers that are no proportion have a
        zero-width one, and `method` says "no spread seen". Few numbers, such as three training seeds, get
        Student's t instead of a bootstrap.

    Raises:
        ValueError: for an empty list, NaN, or a proportion outside 0 to 1.
    """
    array = _checked(values, "values")
    binary = bool(np.isin(array, (0.0, 1.0)).all())
    proportion = binary if proportion is None else proportion
    if proportion and (array.min() < 0 or array.max() > 1):
        raise ValueError(f"A proportion holds {array.min()} to {array.max()}; it must lie in 0 to 1.")
    spread = float(np.ptp(array))
    mean, n = float(array.mean()), array.size
    if proportion and (binary or spread == 0):
        return wilson(min(float(array.sum()), float(n)), n)
    if n == 1:
        return Estimate(mean, math.nan, math.nan, 1, "one value: no interval")
    if spread == 0:
        return Estimate(mean, mean, mean, n, "no spread seen")
    if n <= FEW:
        half = T95[n - 2] * float(array.std(ddof=1)) / math.sqrt(n)
        low, high = (0.0, 1.0) if proportion else (-math.inf, math.inf)
        return Estimate(mean, max(low, mean - half), min(high, mean + half), n, "student t")
    low, high = _percentiles(resampled_means(array, seed))
    return Estimate(mean, low, high, n, "bootstrap")


def cluster_mean_interval(
    clusters: Sequence[Sequence[float]], seed: int = 0, *, proportion: bool | None = None
) -> Estimate:
    """Return the mean over tasks of the mean over trials; tasks are resampled, trials are not.

    Args:
        clusters: for each task, the values of its trials.
        seed: of the bootstrap.
        proportion: as in `mean_interval`; None looks at the trial values.

    Raises:
        ValueError: for no task, or a task without a trial.
    """
    trials = [_checked(values, f"task {i}") for i, values in enumerate(clusters)]
    if not trials:
        raise ValueError("There are no tasks, so there is no mean. Run the evaluation first.")
    if proportion is None:
        proportion = all(bool(np.isin(values, (0.0, 1.0)).all()) for values in trials)
    return mean_interval([float(values.mean()) for values in trials], seed, proportion=proportion)


def ratio_interval(events: Sequence[float], exposure: Sequence[float], seed: int = 0) -> Estimate:
    """Return sum(events) / sum(exposure) as a rate, such as unreadable outputs per model turn.

    Args:
        events: per unit, how often it happened; at most its exposure.
        exposure: per unit, how often it could have happened; above 0.
        seed: of the bootstrap over units. A rate of exactly 0 or 1 gets Wilson's interval over the units.
    """
    top_N, bottom_N = _checked(events, "events"), _checked(exposure, "exposure")
    if top_N.size != bottom_N.size or (bottom_N <= 0).any() or (top_N > bottom_N).any() or (top_N < 0).any():
        raise ValueError("A rate needs, for every unit, 0 <= events <= exposure and exposure > 0.")
    rate = float(top_N.sum() / bottom_N.sum())
    if rate in (0.0, 1.0) or top_N.size == 1:
        bounds = wilson(rate * top_N.size, top_N.size)
        return Estimate(rate, bounds.low, bounds.high, top_N.size, "wilson")
    # The same seed draws the same units above and below the line.
    low, high = _percentiles(resampled_means(top_N, seed) / resampled_means(bottom_N, seed))
    return Estimate(rate, low, high, top_N.size, "bootstrap")


def task_error(solved_NK: np.ndarray) -> float:
    """Return the standard error of an average over tasks, trials averaged inside each task first.

    Args:
        solved_NK: outcome of each of K trials of N >= 2 tasks.

    Source: Miller (2024), Adding error bars to evals, section 3.1, resampling (see 2.2 for clusters).
    """
    mean_N = np.asarray(solved_NK, dtype=float).mean(axis=1)
    return float(mean_N.std(ddof=1) / math.sqrt(len(mean_N)))
