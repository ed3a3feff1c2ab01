"""Intervals and pass rates against hand computation, brute force and SciPy."""

import itertools

import numpy as np
import pytest
from scipy import stats

from rlcas_utils import statistics as st


@pytest.mark.parametrize(("successes", "n"), [(0, 3), (3, 3), (1, 40), (20, 40), (97, 100)])
def test_wilson_equals_scipy(successes, n):
    expected = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    ours = st.wilson(successes, n)
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert ours.low < ours.high


@pytest.mark.parametrize(("successes", "n"), [(4, 3), (-1, 3), (0, 0)])
def test_wilson_refuses_impossible_counts(successes, n):
    with pytest.raises(ValueError, match="no proportion"):
        st.wilson(successes, n)


def test_bootstrap_agrees_with_scipy():
    data = np.random.default_rng(1).gamma(2.0, 3.0, size=60)
    ours = st.mean_interval(data, seed=4)
    scipys = stats.bootstrap(
        (data,), np.mean, n_resamples=9999, method="percentile", rng=7
    ).confidence_interval
    assert ours.value == pytest.approx(data.mean())
    assert (ours.low, ours.high) == pytest.approx((scipys.low, scipys.high), abs=0.12)


def test_same_seed_same_interval_other_seed_other_interval():
    data = np.random.default_rng(2).normal(size=40)
    assert st.mean_interval(data, 3) == st.mean_interval(data, 3)
    assert st.mean_interval(data, 3).ci95 != st.mean_interval(data, 5).ci95


def test_few_values_get_students_t_as_in_scipy():
    """Three training seeds, means 13, 14 and 18: a bootstrap would never leave 13 to 18."""
    for values in ([13.0, 14.0, 18.0], [1.0, 2.0], list(range(9))):
        error = np.std(values, ddof=1) / len(values) ** 0.5
        expected = stats.t.interval(0.95, len(values) - 1, np.mean(values), error)
        ours = st.mean_interval(values)
        assert (ours.low, ours.high) == pytest.approx(expected, rel=1e-4)
        assert ours.method == "student t"
    rates = st.mean_interval([0.75, 0.9, 0.95], proportion=True)
    assert (rates.low, rates.high) == (pytest.approx(0.608, abs=1e-3), 1.0)
    assert st.mean_interval(list(range(10))).method == "bootstrap"


def test_three_seeds_cover_the_true_mean_as_often_as_they_say():
    rng = np.random.default_rng(0)
    estimates = [st.mean_interval(rng.normal(5.0, 2.0, size=3)) for _ in range(800)]
    assert np.mean([e.low <= 5.0 <= e.high for e in estimates]) == pytest.approx(0.95, abs=0.02)


def test_variation_by_hand():
    """Two seeds, two tickets, two trials; seed means 2 and 4, ticket means 1 and 5, trials one apart.

    Sums of squares: seeds 2 * 2 * (1 + 1) = 8, tickets 2 * 2 * (4 + 4) = 32, no interaction, trials
    4 * 2 * 0.25 = 2. Mean squares 8, 32, 0, 2 / 4 = 0.5. Components: (8 - 0) / 4 = 2, (32 - 0) / 4 = 8, 0.5.
    """
    cells = np.array([[0.0, 4.0], [2.0, 6.0]])
    found = st.variation(np.stack([cells - 0.5, cells + 0.5], axis=2))
    assert (found.mean, found.seeds, found.tickets, found.trials) == (3.0, 2, 2, 2)
    assert found.training_sd == pytest.approx(2**0.5)
    assert found.ticket_sd == pytest.approx(8**0.5)
    assert found.trial_sd == pytest.approx(0.5**0.5)


def test_variation_finds_what_was_put_in():
    """Training 1.5, tickets 4, trials 2, estimated from 40 seeds, 60 tickets and 3 trials; 200 worlds."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(200):
        training, ticket = rng.normal(0, 1.5, (40, 1, 1)), rng.normal(0, 4.0, (1, 60, 1))
        made = st.variation(10 + training + ticket + rng.normal(0, 2.0, (40, 60, 3)))
        found.append((made.training_sd**2, made.ticket_sd**2, made.trial_sd**2))
    assert np.mean(found, axis=0) == pytest.approx((1.5**2, 16.0, 4.0), rel=0.05)


def test_training_variation_is_not_trial_variation():
    """Seeds that differ only by trial noise have no training variation; more trials do not hide real one."""
    rng = np.random.default_rng(5)
    noise = st.variation(rng.normal(0, 2.0, (5, 100, 4)))
    assert noise.training_sd < 0.15
    assert noise.trial_sd == pytest.approx(2.0, rel=0.05)
    lucky = st.variation(np.arange(3.0)[:, None, None] + np.zeros((3, 100, 4)))
    assert lucky.training_sd == pytest.approx(1.0)
    assert lucky.trial_sd == 0.0


def test_one_seed_or_one_trial_says_nothing_about_that_cause():
    alone = st.variation([[1.0, 2.0, 3.0]])
    assert np.isnan(alone.training_sd)
    assert np.isnan(alone.trial_sd)
    assert alone.ticket_sd == pytest.approx(1.0)
    with pytest.raises(ValueError, match="every training seed played every ticket"):
        st.variation([[1.0, float("nan")]])


def test_bootstrap_covers_the_true_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for trial in range(150):
        estimate = st.mean_interval(rng.normal(5.0, 2.0, size=50), trial)
        hits += estimate.low <= 5.0 <= estimate.high
    assert 0.88 <= hits / 150 <= 1.0


def test_all_successes_do_not_give_a_zero_width_interval():
    three_of_three = st.mean_interval([1, 1, 1])
    assert three_of_three.value == 1.0
    assert three_of_three.low == pytest.approx(0.4385, abs=1e-4)
    assert st.mean_interval([0.5, 0.5, 0.5], proportion=True).low < 0.5


def test_one_value_and_constant_values_say_so():
    assert st.mean_interval([7.5]).ci95 is None
    assert st.mean_interval([1.0, 1.0], proportion=False).method == "no spread seen"


@pytest.mark.parametrize(("bad", "message"), [([], "flat list"), ([1.0, float("nan")], r"\[1\] is nan")])
def test_mean_refuses_what_has_no_mean(bad, message):
    with pytest.raises(ValueError, match=message):
        st.mean_interval(bad)


def test_proportion_outside_its_range_is_refused():
    with pytest.raises(ValueError, match="0 to 1"):
        st.mean_interval([0.5, 1.5], proportion=True)


def test_task_is_the_unit_not_the_trial():
    """20 tasks always solved, 20 never, 4 trials each: standard error 0.08, not 0.04."""
    estimate = st.cluster_mean_interval([[1] * 4] * 20 + [[0] * 4] * 20)
    assert estimate.value == 0.5
    assert estimate.n == 40
    assert (estimate.high - estimate.low) / (2 * 1.96) == pytest.approx(0.08, abs=0.006)
    mixed = st.cluster_mean_interval([[1, 1, 1, 1]] * 19 + [[0, 0, 0, 0]] * 20 + [[1, 1, 0, 0]])
    assert (mixed.high - mixed.low) / (2 * 1.96) == pytest.approx(0.08, abs=0.006)


def test_tasks_count_equally_when_trials_differ():
    assert st.cluster_mean_interval([[1, 1, 1, 1], [0]]).value == 0.5
    with pytest.raises(ValueError, match="task 1"):
        st.cluster_mean_interval([[1], []])


def test_ratio_is_events_over_exposure():
    """3 failures in 1 + 2 + 3 + 4 = 10 turns."""
    rate = st.ratio_interval([0, 0, 1, 2], [1, 2, 3, 4])
    assert rate.value == pytest.approx(0.3)
    assert rate.low < 0.3 < rate.high
    assert st.ratio_interval([0, 0], [3, 3]).high == st.wilson(0, 2).high
    with pytest.raises(ValueError, match="exposure"):
        st.ratio_interval([2], [1])


def _rows(values, field="return", seed=0):
    return [{"ticket_id": f"T{i}", "seed": seed, field: value} for i, value in enumerate(values)]


def test_paired_difference_is_narrower_than_two_samples():
    base = np.random.default_rng(0).normal(0, 10, size=50)
    noise = np.random.default_rng(1).normal(1.0, 0.5, size=50)
    difference = st.paired_difference(_rows(base + noise), _rows(base)).estimate
    assert difference.value == pytest.approx(noise.mean())
    assert difference.high - difference.low < 0.5
    scipys = stats.bootstrap(
        (noise,), np.mean, n_resamples=9999, method="percentile", rng=7
    ).confidence_interval
    assert (difference.low, difference.high) == pytest.approx((scipys.low, scipys.high), abs=0.03)


def test_unmatched_episodes_are_refused_or_listed():
    a, b = _rows([1.5, 2.0, 3.0]), _rows([1.0, 1.0])
    with pytest.raises(ValueError, match="1 are only in a") as error:
        st.paired_difference(a, b)
    assert "T2" in str(error.value)
    listed = st.paired_difference(a, b, unmatched="list")
    assert listed.only_a == (("T2", 0),)
    assert listed.estimate.value == pytest.approx(0.75)
    with pytest.raises(ValueError, match="0 episodes are shared"):
        st.paired_difference(a, _rows([1.0], seed=1), unmatched="list")


def test_doubled_episode_is_refused():
    with pytest.raises(ValueError, match="twice"):
        st.paired_difference(_rows([1.0]) * 2, _rows([1.0]))


def test_seeds_of_one_ticket_are_one_unit():
    a = _rows([1.5, 3.0]) + _rows([2.5, 5.0], seed=1)
    b = _rows([0.0, 0.0]) + _rows([0.0, 0.0], seed=1)
    estimate = st.paired_difference(a, b).estimate
    assert (estimate.value, estimate.n) == (3.0, 2)


def test_binary_difference_by_hand():
    """n = 10, a alone solves 3, b alone solves 1: centre (3.5 - 1.5) / 12, variance from Agresti and Min."""
    a = _rows([1, 1, 1, 0, 1, 1, 1, 0, 0, 0], "resolved")
    b = _rows([0, 0, 0, 1, 1, 1, 1, 0, 0, 0], "resolved")
    estimate = st.paired_difference(a, b, value="resolved").estimate
    half = 1.959964 * np.sqrt(5 - 4 / 12) / 12
    assert estimate.value == pytest.approx(0.2)
    assert (estimate.low, estimate.high) == pytest.approx((2 / 12 - half, 2 / 12 + half), abs=1e-6)
    same = st.paired_difference(a, a, value="resolved").estimate
    assert same.value == 0.0
    assert same.low < 0 < same.high


def _brute(n, c, k):
    outcomes = [1] * c + [0] * (n - c)
    draws = list(itertools.combinations(outcomes, k))
    return sum(any(d) for d in draws) / len(draws), sum(all(d) for d in draws) / len(draws)


@pytest.mark.parametrize("n", range(1, 7))
def test_pass_rates_equal_brute_force(n):
    for c in range(n + 1):
        for k in range(1, n + 1):
            assert (st.pass_at_k(n, c, k), st.pass_hat_k(n, c, k)) == pytest.approx(_brute(n, c, k))
        assert st.pass_at_k(n, c, 1) == pytest.approx(c / n)
        assert st.pass_hat_k(n, c, 1) == pytest.approx(c / n)


def test_pass_rates_of_the_worked_case():
    """n = 4, successes 4, 2, 0, k = 2: 7/18 and 11/18; the plug-in formula would say 5/12."""
    assert np.mean([st.pass_hat_k(4, c, 2) for c in (4, 2, 0)]) == pytest.approx(7 / 18)
    assert np.mean([st.pass_at_k(4, c, 2) for c in (4, 2, 0)]) == pytest.approx(11 / 18)


@pytest.mark.parametrize(
    ("n", "c", "k", "message"),
    [(4, 2, 5, "k = 5 with 4 trials"), (4, 5, 2, "impossible"), (4, 2, 0, "k = 0"), (4, True, 2, "no count")],
)
def test_pass_rates_refuse(n, c, k, message):
    for rate in (st.pass_at_k, st.pass_hat_k):
        with pytest.raises(ValueError, match=message):
            rate(n, c, k)


def test_unequal_trials_limit_k_and_say_so():
    assert st.common_k([4, 4, 4]) == (4, "")
    k, note = st.common_k([4, 4, 3])
    assert k == 3
    assert "1 of 3 tasks" in note
    with pytest.raises(ValueError, match="finished trial"):
        st.common_k([4, 0])


def test_metric_entry_has_the_record_keys():
    entry = st.mean_interval([1, 0, 1, 1]).metric("share", seeds=[0])
    assert set(entry) == {"value", "n", "seeds", "ci95", "unit"}
    assert entry["n"] == 4


def test_resampled_means_of_three_tasks_equal_the_27_cases():
    """Three tasks solved 1, 0.5 and 0 of the time: 27 equally likely samples, listed by brute force."""
    exact = np.array([np.mean(draw) for draw in itertools.product([1, 0.5, 0], repeat=3)])
    drawn = st.resampled_means(np.array([1, 0.5, 0]), seed=0, resamples=20000)
    for mean in np.unique(exact):
        assert np.isclose(drawn, mean).mean() == pytest.approx((exact == mean).mean(), abs=0.012)


def test_task_error_by_hand():
    """Task means 1, 0.5, 0: standard deviation 0.5, over the root of 3."""
    assert st.task_error([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]) == pytest.approx(0.5 / 3**0.5)
