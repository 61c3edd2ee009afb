"""Statistics against formulas that share no code with them."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest

from rl4sys.laboratory.comparison.statistics import estimate_iqm, iqm, iqm_band, probability_of_improvement


def plain_iqm(scores: list[float]) -> float:
    """Leave out a quarter at either end, take the mean of the rest."""
    cut = math.floor(0.25 * len(scores))
    return statistics.fmean(sorted(scores)[cut : len(scores) - cut])


def exact_interval(values: list[float]) -> tuple[float, float]:
    """The 2.5 % and 97.5 % points of equally likely values."""
    ordered = sorted(values)
    return ordered[math.ceil(0.025 * len(ordered)) - 1], ordered[math.ceil(0.975 * len(ordered)) - 1]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 11, 100])
def test_the_interquartile_mean_is_that_of_the_middle_half(count: int) -> None:
    scores = np.random.default_rng(count).normal(size=count)
    assert float(iqm(scores)) == pytest.approx(plain_iqm(list(scores)), abs=1e-12)


def test_one_bad_seed_of_four_changes_it_little() -> None:
    assert iqm(np.array([10.0, 11.0, 12.0, -1e9])) == 10.5


def test_the_interval_is_that_of_all_possible_resamples() -> None:
    scores = [1.0, 2.0, 4.0, 8.0, 16.0]
    exact = exact_interval([plain_iqm(list(drawn)) for drawn in itertools.product(scores, repeat=5)])
    estimate = estimate_iqm([np.array(scores)], np.random.default_rng(0))
    assert estimate.value == plain_iqm(scores)
    assert (estimate.low, estimate.high) == pytest.approx(exact, abs=0.35)


def test_the_bootstrap_never_resamples_across_tasks() -> None:
    """Two tasks with constant scores: each keeps its share in every resample."""
    strata = [np.full(4, 0.0), np.full(4, 100.0)]
    estimate = estimate_iqm(strata, np.random.default_rng(0), resamples=500)
    assert (estimate.low, estimate.value, estimate.high) == (50.0, 50.0, 50.0)


def test_intervals_over_tasks_are_those_of_all_possible_resamples() -> None:
    first, second = [0.0, 1.0, 3.0], [10.0, 14.0]
    draws = itertools.product(itertools.product(first, repeat=3), itertools.product(second, repeat=2))
    exact = exact_interval([plain_iqm([*a, *b]) for a, b in draws])
    estimate = estimate_iqm([np.array(first), np.array(second)], np.random.default_rng(1))
    assert (estimate.low, estimate.high) == pytest.approx(exact, abs=0.35)


def test_the_interval_covers_the_truth_as_often_as_it_should() -> None:
    """For 20 normal scores the bootstrap of an IQM covers a little less than 95 %."""
    rng = np.random.default_rng(7)
    estimates = [estimate_iqm([rng.normal(5.0, 2.0, 20)], rng, resamples=500) for _ in range(300)]
    covered = sum(e.low is not None and e.high is not None and e.low <= 5.0 <= e.high for e in estimates)
    assert 0.88 <= covered / 300 <= 0.98


def test_the_probability_of_improvement_counts_pairs() -> None:
    ours, theirs = [3.0, 5.0, 7.0], [1.0, 5.0, 9.0, 6.0]
    pairs = [(x > y) + 0.5 * (x == y) for x in ours for y in theirs]
    estimate = probability_of_improvement([np.array(ours)], [np.array(theirs)], np.random.default_rng(0))
    assert estimate.value == pytest.approx(statistics.fmean(pairs))
    draws = itertools.product(itertools.product(ours, repeat=3), itertools.product(theirs, repeat=4))
    exact = exact_interval(
        [statistics.fmean((x > y) + 0.5 * (x == y) for x in a for y in b) for a, b in draws],
    )
    assert (estimate.low, estimate.high) == pytest.approx(exact, abs=0.05)


def test_the_probability_is_averaged_over_tasks() -> None:
    better, worse = [np.array([2.0, 3.0])], [np.array([0.0, 1.0])]
    estimate = probability_of_improvement(better + worse, worse + better, np.random.default_rng(0), resamples=100)
    assert estimate.value == 0.5


def test_one_run_has_no_interval() -> None:
    one, other = [np.array([1.0])], [np.array([2.0])]
    assert estimate_iqm(one, np.random.default_rng(0)).json_values() == {"value": 1.0, "low": None, "high": None}
    assert probability_of_improvement(one, other, np.random.default_rng(0)).low is None


def test_a_band_is_the_estimate_at_every_point() -> None:
    curves = np.random.default_rng(3).normal(size=(6, 4))
    middle, low, high = iqm_band(curves, np.random.default_rng(0), resamples=4_000)
    for point in range(4):
        estimate = estimate_iqm([curves[:, point]], np.random.default_rng(1))
        assert middle[point] == pytest.approx(estimate.value)
        assert (low[point], high[point]) == pytest.approx((estimate.low, estimate.high), abs=0.1)


def test_the_same_seed_gives_the_same_interval() -> None:
    scores = [np.random.default_rng(0).normal(size=10)]
    assert estimate_iqm(scores, np.random.default_rng(5)) == estimate_iqm(scores, np.random.default_rng(5))
