"""The generator against the moments of its model, with closed forms where there are any."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest

from rl4sys.environments.scheduling import generate
from rl4sys.environments.scheduling.lublin import (
    LONGEST,
    PARAMETERS,
    JobKind,
    draw_arrivals,
    draw_run_times,
    draw_sizes,
)

COUNT = 200_000
KINDS: tuple[JobKind, ...] = get_args(JobKind)


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_have_the_shares_and_the_mean_logarithm_of_the_model(kind: JobKind) -> None:
    parameters = PARAMETERS[kind]
    sizes = draw_sizes(parameters, COUNT, 128, np.random.default_rng(0))
    low, middle, high, below = parameters.size
    parallel = sizes[sizes > 1]
    # Rounding to a power of two keeps the mean, except near the ends of the range.
    expected = below * (low + middle) / 2 + (1 - below) * (middle + high) / 2
    assert np.mean(sizes == 1) == pytest.approx(parameters.serial, abs=0.005)
    assert np.mean(parallel & (parallel - 1) == 0) > parameters.power_of_two / (1 - parameters.serial) - 0.01
    assert np.log2(parallel).mean() == pytest.approx(expected, abs=0.05)
    assert sizes.max() <= 2**high


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 32, 100])
def test_the_logarithm_of_run_times_has_the_moments_of_two_gammas(kind: JobKind, size: int) -> None:
    parameters = PARAMETERS[kind]
    logarithm = np.log(draw_run_times(parameters, np.full(COUNT, size), np.random.default_rng(1)))
    weight = min(1.0, max(0.0, parameters.run_weight[0] * size + parameters.run_weight[1]))
    (a, b), (c, d) = parameters.run
    mean = weight * a * b + (1 - weight) * c * d
    second = weight * (a * b * b + (a * b) ** 2) + (1 - weight) * (c * d * d + (c * d) ** 2)
    # Whole seconds and the longest run time shift both a little.
    assert logarithm.max() <= LONGEST + 1e-9
    assert logarithm.mean() == pytest.approx(mean, rel=0.03)
    assert logarithm.std() == pytest.approx(math.sqrt(second - mean**2), rel=0.12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_rate_of_arrivals_is_that_of_the_gamma(kind: JobKind) -> None:
    shape, scale = PARAMETERS[kind].gap
    arrivals = draw_arrivals(PARAMETERS[kind], COUNT, np.random.default_rng(2))
    # E exp(gamma) = (1 − scale)^−shape; its variance is large or infinite, so medians are compared.
    drawn = np.median(np.diff(arrivals))
    plain = np.median(np.exp(np.random.default_rng(3).gamma(shape, scale, COUNT)))
    assert 0.3 * plain < drawn < plain
    assert (np.diff(arrivals) >= 0.0).all()


def test_the_afternoon_is_busier_than_the_early_morning() -> None:
    hours = draw_arrivals(PARAMETERS["typeless"], COUNT, np.random.default_rng(4)) % 86_400 // 3600
    assert np.mean((hours >= 13) & (hours < 17)) > 5 * np.mean((hours >= 3) & (hours < 7))


def test_kinds_of_jobs_arrive_side_by_side() -> None:
    jobs = generate(2000, 128, np.random.default_rng(5), kinds=("batch", "interactive"))
    assert len(jobs) == 2000
    assert (np.diff(jobs.submit) >= 0.0).all()
    assert (jobs.needed <= 128).all()


@pytest.mark.parametrize("processors", [1, 2, 8, 4392])
def test_machines_of_any_size_get_jobs_that_fit(processors: int) -> None:
    jobs = generate(500, processors, np.random.default_rng(6))
    assert 1 <= jobs.needed.min() <= jobs.needed.max() <= processors
