"""The measures of a model, on predictions whose quality is known."""

from __future__ import annotations

import numpy as np
import pytest

from rl4sys.dynamics import Forecast, Truth, copy_last_error, coverage, disagreement, open_loop_error, reward_r2
from rl4sys.experience import Array

RNG = np.random.default_rng(0)
LAST = RNG.normal(size=(4_000, 2))
AFTER = LAST[:, None] + np.array([1.0, 2.0])[None, :, None] * RNG.normal(size=(4_000, 2, 2))
REWARD = RNG.normal(size=(4_000, 2))
TRUTH = Truth(LAST, AFTER, REWARD)


def forecast(error: float, std: float | None = None, members: int = 3) -> Forecast:
    """Predictions with normal errors, each member with its own."""

    def noisy(array: Array) -> Array:
        return array + error * RNG.normal(size=(members, *array.shape))

    if std is None:
        return Forecast(noisy(AFTER), noisy(REWARD))
    return Forecast(noisy(AFTER), noisy(REWARD), np.full((members, 4_000, 2), std), np.full((members, 4_000), std))


def test_perfect_predictions_have_no_error() -> None:
    assert open_loop_error(forecast(0.0), TRUTH).max() < 1e-12
    assert reward_r2(forecast(0.0), TRUTH) == 1.0


def test_copying_the_last_observation_gets_worse_with_every_step() -> None:
    first, second = copy_last_error(TRUTH)
    assert second == pytest.approx(2.0 * first, rel=0.05)


def test_predicting_the_mean_explains_no_reward() -> None:
    guess = Forecast(AFTER[None], np.full((1, 4_000, 2), REWARD[:, 0].mean()))
    assert reward_r2(guess, TRUTH) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(("std", "expected"), [(0.3, 0.9), (0.15, 0.589), (0.6, 0.999)])
def test_intervals_hold_as_often_as_their_width_says(std: float, expected: float) -> None:
    found = coverage(forecast(0.3, std), TRUTH, [0.9])
    assert found is not None
    assert found[0] == pytest.approx(expected, abs=0.01)


def test_a_model_without_deviations_has_no_intervals() -> None:
    assert coverage(forecast(0.3), TRUTH) is None


def test_members_that_differ_more_disagree_more() -> None:
    unit = np.ones(2)
    assert disagreement(forecast(0.0), unit) < 1e-12
    ratio = disagreement(forecast(0.6), unit) / disagreement(forecast(0.2), unit)
    assert ratio == pytest.approx(3.0, rel=0.05)
    assert disagreement(forecast(1.0, members=1), unit) == 0.0
