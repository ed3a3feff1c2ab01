"""Exercises of notebook 07: pass@k, the error over tasks, a paired interval, a seed chosen on other data."""

from __future__ import annotations

import math
from math import comb

import numpy as np

from rlcas_utils.exercises.checker import Exercise


def _task_error(solved_NK: np.ndarray) -> float:
    """Standard error of the average, with the task as the unit."""
    mean_N = solved_NK.mean(axis=1)
    return mean_N.std(ddof=1) / math.sqrt(len(mean_N))


task_error = Exercise(
    reference=_task_error,
    inputs=[
        (np.array([[1, 1], [0, 0], [1, 0]]),),
        (np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]),),
        (np.array([[1, 1], [0, 0], [1, 0], [0, 0]]),),
    ],
    mistakes={
        "every trial was counted as independent.": lambda x: x.std(ddof=1) / math.sqrt(x.size),
        "the axes are swapped: average the trials of each task.": lambda x: _task_error(x.T),
        "divide by N - 1, not N, inside the deviation: std(ddof=1).": lambda x: (
            x.mean(axis=1).std() / math.sqrt(len(x))
        ),
        "this is the spread of tasks; divide by the root of N.": lambda x: x.mean(axis=1).std(ddof=1),
    },
)


def _pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that at least one of k tries succeeds, when c of n trials did."""
    return 1 - comb(n - c, k) / comb(n, k)


pass_at_k = Exercise(
    reference=_pass_at_k,
    inputs=[(5, 2, 2), (4, 4, 2), (4, 0, 3), (5, 1, 1)],
    mistakes={
        "this is pass^k, all of k tries; pass@k asks for at least one.": lambda n, c, k: (
            comb(c, k) / comb(n, k)
        ),
        "1 - (1 - c/n)^k draws one trial twice; count subsets instead.": lambda n, c, k: 1 - (1 - c / n) ** k,
        "this is the chance that all tries fail; take it from 1.": lambda n, c, k: (
            comb(n - c, k) / comb(n, k)
        ),
    },
)


def _paired_interval(a_N: np.ndarray, b_N: np.ndarray) -> tuple[float, float]:
    """95 % interval of the mean of a - b, each ticket compared with itself."""
    difference_N = a_N - b_N
    half = 1.96 * difference_N.std(ddof=1) / math.sqrt(len(difference_N))
    return difference_N.mean() - half, difference_N.mean() + half


def _around(mean: float, error: float) -> tuple[float, float]:
    return mean - 1.96 * error, mean + 1.96 * error


def _unpaired(a_N: np.ndarray, b_N: np.ndarray) -> tuple[float, float]:
    error = math.sqrt(a_N.var(ddof=1) / len(a_N) + b_N.var(ddof=1) / len(b_N))
    return _around(a_N.mean() - b_N.mean(), error)


def _without_the_root(a_N: np.ndarray, b_N: np.ndarray) -> tuple[float, float]:
    return _around((a_N - b_N).mean(), (a_N - b_N).std(ddof=1))


def _one_error(a_N: np.ndarray, b_N: np.ndarray) -> tuple[float, float]:
    error = (a_N - b_N).std(ddof=1) / math.sqrt(len(a_N))
    return (a_N - b_N).mean() - error, (a_N - b_N).mean() + error


paired_interval = Exercise(
    reference=_paired_interval,
    inputs=[
        (np.array([12.0, 3.0, 9.0, 20.0]), np.array([10.0, 1.0, 9.0, 16.0])),
        (np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 5.0])),
    ],
    mistakes={
        "the spreads of the two agents were added; first take the difference of each ticket.": (_unpaired),
        "this is the spread of single differences; the mean of N of them is surer by the root of N.": (
            _without_the_root
        ),
        "one standard error on each side covers 68 %; 95 % needs 1.96 of them.": _one_error,
        "the sign is turned round: a - b was asked for.": lambda a, b: _paired_interval(b, a),
    },
)


def _chosen_score(validation_S: np.ndarray, test_S: np.ndarray) -> float:
    """Test score of the seed that is best on validation."""
    return test_S[validation_S.argmax()]


chosen_score = Exercise(
    reference=_chosen_score,
    inputs=[
        (np.array([3.0, 5.0, 4.0]), np.array([6.0, 2.0, 8.0])),
        (np.array([0.9, 0.1]), np.array([0.2, 0.4])),
    ],
    mistakes={
        "the seed was chosen by its test score, which is the fault itself.": lambda v, t: t.max(),
        "this is the winner's validation score, lucky by the choice; report its test score.": lambda v, t: (
            v.max()
        ),
        "this is the mean over all seeds: honest too, but one seed was asked for.": lambda v, t: t.mean(),
    },
)
