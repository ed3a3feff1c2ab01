"""Two pass rates, one letter apart: pass@k wants at least one success in k tries, pass^k wants all k.

A task is tried `n` times and solved `c` times. Both rates ask about `k` tries drawn from those `n` without
replacement, so they are exact counts of subsets and have no bias; putting the observed rate into a formula,
`(c / n) ** k`, overstates pass^k. At k = 1 both are the success rate. A `k` above `n` has no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb


def check_counts(n: int, c: int, k: int) -> None:
    """Refuse counts that no pass rate has an unbiased answer for.

    Args:
        n: trials run on the task.
        c: trials that succeeded.
        k: tries asked about.

    Raises:
        ValueError: if a count is no whole number, c > n, or k is not in 1 to n.
    """
    for name, value in (("n", n), ("c", c), ("k", k)):
        if isinstance(value, bool) or value != int(value):
            raise ValueError(f"{name} = {value!r} is no count; give whole numbers of trials and successes.")
    if not 0 <= c <= n:
        raise ValueError(f"{c} successes in {n} trials is impossible; give 0 <= c <= n.")
    if not 1 <= k <= n:
        raise ValueError(f"k = {k} with {n} trials has no unbiased answer; use 1 to {n}, or run more trials.")


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that at least one of k tries succeeds.

    Args:
        n: trials run on the task.
        c: trials that succeeded.
        k: tries asked about, 1 to n.

    Raises:
        ValueError: for impossible counts or k > n.

    Source: Chen et al. (2021), Evaluating large language models trained on code, equation 1.
    """
    check_counts(n, c, k)
    return 1.0 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Return the chance that all of k tries succeed.

    Args:
        n: trials run on the task.
        c: trials that succeeded.
        k: tries asked about, 1 to n.

    Raises:
        ValueError: for impossible counts or k > n.

    Source: Yao et al. (2024), tau-bench, section 3, pass^k.
    """
    check_counts(n, c, k)
    return comb(c, k) / comb(n, k)


def common_k(trials: Sequence[int]) -> tuple[int, str]:
    """Return the largest k that every task allows, and a note where tasks differ.

    Args:
        trials: number of trials of each task.
    """
    if not trials or min(trials) < 1:
        raise ValueError(f"Trials per task are {list(trials)[:5]}; every task needs a finished trial.")
    low, high = min(trials), max(trials)
    if low == high:
        return low, ""
    short = sum(n < high for n in trials)
    return low, f"{short} of {len(trials)} tasks have fewer than {high} trials, so k goes up to {low} only."
