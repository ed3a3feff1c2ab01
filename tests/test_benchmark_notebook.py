"""The exercises of notebooks 06 and 07: their right answers, worked out by hand or in another way."""

import math
from itertools import combinations

import numpy as np
import pytest

from rlcas_utils import statistics
from rlcas_utils.exercises import benchmark, telecom
from rlcas_utils.telecom import scoring, tau2


@pytest.mark.parametrize(("n", "c", "k"), [(4, 2, 2), (4, 2, 3), (5, 1, 2), (3, 3, 3), (3, 0, 1)])
def test_pass_rates_count_the_draws(n, c, k):
    draws = list(combinations([True] * c + [False] * (n - c), k))
    assert benchmark.pass_at_k.reference(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert telecom.pass_hat_k.reference(n, c, k) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_a_paired_interval_by_hand():
    low, high = benchmark.paired_interval.reference(np.array([12.0, 3, 9, 20]), np.array([10.0, 1, 9, 16]))
    half = 1.96 * math.sqrt(8 / 3) / 2  # differences 2, 2, 0, 4 lie 0, 0, 2, 2 from their mean of 2
    assert (low, high) == pytest.approx((2 - half, 2 + half))


def test_the_error_over_tasks_is_that_of_the_package():
    solved_NK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]])
    assert benchmark.task_error.reference(solved_NK) == pytest.approx(math.sqrt(0.25 / 3))
    assert benchmark.task_error.reference(solved_NK) == pytest.approx(statistics.task_error(solved_NK))


def test_a_seed_chosen_apart_is_not_lucky_on_the_test():
    validation_S, test_S = np.array([1.0, 4.0, 2.0]), np.array([9.0, 5.0, 7.0])
    assert benchmark.chosen_score.reference(validation_S, test_S) == 5.0


def test_the_score_by_group_leaves_out_what_was_lost():
    rows = [{"group": "fixable", "reward": reward, "lost": ""} for reward in (1.0, 0.0, 0.0)]
    rows += [{"group": "transfer", "reward": 1.0, "lost": ""}]
    rows += [{"group": "transfer", "reward": 0.0, "lost": "timeout"}]
    assert telecom.split_score.reference(rows) == {"all": 0.5, "fixable": 1 / 3, "transfer": 1.0}


def test_a_call_counts_where_the_packages_score_counts_it():
    """One call alone: the exercise asks what `action_done` asks, but for undoing."""
    for action, call in telecom.call_counts.inputs:
        assert telecom.call_counts.reference(action, call) == scoring.action_done(action, [call])


def test_a_partial_score_is_that_of_the_package():
    task = next(t for t in tau2.tasks("test") if len(t.evaluation_criteria.env_assertions) == 3)
    nothing_done = [False] * len(task.evaluation_criteria.actions)
    for start, now in (([False] * 3, [True, False, True]), ([True] * 3, [True] * 3)):
        package = scoring.partial_score(task, [], start, now)
        assert telecom.partial_score.reference(nothing_done, start, now) == package
    assert telecom.partial_score.reference([True] * 4 + [False] * 3, [False] * 3, [True, False, True]) == (
        pytest.approx((4 / 7 + 2 / 3) / 2)
    )
