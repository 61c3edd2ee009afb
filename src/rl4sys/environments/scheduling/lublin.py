"""Generates workloads by the model of Lublin and Feitelson (JPDC 63(11), 2003): sizes, run times and the daily cycle.

Sizes are 1, a power of two, or any number, with a two-stage uniform logarithm. The logarithm of a run time has a
hyper-gamma distribution whose weight depends on the size. The logarithm of a gap between arrivals has a gamma
distribution, and gaps pass faster in the busy half-hours of a day.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rl4sys.environments.scheduling.workload import Workload, workload
from rl4sys.experience import Array

LONGEST = 12.0
"""Natural logarithm of the longest run time, about 45 hours; longer ones are drawn again."""
BUCKETS = 48
"""Half-hours of a day."""
_BUCKET_SECONDS = 1800.0
_FIRST_BUCKET = 11
"""The half-hour with which the gamma distribution of the daily cycle begins: half past five."""

JobKind = Literal["typeless", "batch", "interactive"]


@dataclass(frozen=True, slots=True)
class ModelParameters:
    """What the model draws jobs of one kind from; gammas are (shape, scale)."""

    serial: float
    """Share of jobs on one processor."""
    power_of_two: float
    """Share of jobs whose size is a power of two, of the parallel ones."""
    size: tuple[float, float, float, float]
    """Low, middle and high logarithm (base 2) of parallel sizes, and the share below the middle."""
    run: tuple[tuple[float, float], tuple[float, float]]
    """The two gammas of the logarithm of a run time."""
    run_weight: tuple[float, float]
    """Slope and intercept over the size: the weight of the first of them."""
    gap: tuple[float, float]
    """The gamma of the logarithm of a gap between arrivals."""
    day: tuple[float, float]
    """The gamma of arrivals over the half-hours of a day."""
    grows: bool = False
    """Whether middle and high, given for 128 processors, grow with the machine, as the model's authors recommend."""


PARAMETERS: Mapping[JobKind, ModelParameters] = {
    "typeless": ModelParameters(
        serial=0.244,
        power_of_two=0.576,
        size=(0.8, 4.5, 7.0, 0.86),
        run=((4.2, 0.94), (312.0, 0.03)),
        run_weight=(-0.0054, 0.78),
        gap=(10.2303 * 1.0225, 0.4871),
        day=(8.1737, 3.9631),
        grows=True,
    ),
    "batch": ModelParameters(
        serial=0.2927,
        power_of_two=0.6686,
        size=(1.2, 5.0, 7.0, 0.875),
        run=((6.57, 0.823), (639.1, 0.0156)),
        run_weight=(-0.003, 0.6986),
        gap=(6.0415 * 1.0519, 0.8531),
        day=(6.1271, 5.2740),
    ),
    "interactive": ModelParameters(
        serial=0.1541,
        power_of_two=0.625,
        size=(1.0, 3.0, 5.5, 0.705),
        run=((3.8351, 0.6605), (7.073, 0.6856)),
        run_weight=(-0.0118, 0.9156),
        gap=(6.5510 * 0.9797, 0.6621),
        day=(8.9186, 3.6680),
    ),
}


def generate(
    count: int, processors: int, rng: np.random.Generator, kinds: tuple[JobKind, ...] = ("typeless",)
) -> Workload:
    """`count` jobs for a machine; each kind arrives by itself, and the first `count` of all of them are taken."""
    parts = []
    for kind in kinds:
        parameters = PARAMETERS[kind]
        sizes = draw_sizes(parameters, count, processors, rng)
        arrivals = draw_arrivals(parameters, count, rng)
        parts.append((arrivals, draw_run_times(parameters, sizes, rng), sizes))
    submit, run, sizes = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    first = np.argsort(submit, kind="stable")[:count]
    return workload(submit[first], run[first], run[first], sizes[first], processors)


def draw_sizes(parameters: ModelParameters, count: int, processors: int, rng: np.random.Generator) -> Array:
    """Processors of jobs."""
    low, middle, high, below = parameters.size
    largest = math.log2(processors)
    more = largest - high if parameters.grows else 0.0
    high = min(high + more, largest)
    middle = min(max(middle + more, low), high)
    low = min(low, middle)
    first, kind = rng.random(count) < below, rng.random(count)
    exponent = np.where(first, rng.uniform(low, middle, count), rng.uniform(middle, high, count))
    exponent = np.where(kind < parameters.serial + parameters.power_of_two, np.rint(exponent), exponent)
    sizes = np.where(kind < parameters.serial, 1, np.rint(2.0**exponent))
    return np.minimum(sizes, processors).astype(np.int64)


def draw_run_times(parameters: ModelParameters, sizes: Array, rng: np.random.Generator) -> Array:
    """Whole seconds, at least 1, of jobs of these sizes."""
    slope, intercept = parameters.run_weight
    weight = np.clip(slope * sizes + intercept, 0.0, 1.0)
    logarithm = np.full(len(sizes), np.inf)
    while (drawn := np.flatnonzero(logarithm > LONGEST)).size:
        one, other = (rng.gamma(shape, scale, drawn.size) for shape, scale in parameters.run)
        logarithm[drawn] = np.where(rng.random(drawn.size) < weight[drawn], one, other)
    return np.asarray(np.maximum(1.0, np.rint(np.exp(logarithm))))


def draw_arrivals(parameters: ModelParameters, count: int, rng: np.random.Generator) -> Array:
    """Whole seconds after midnight of the first day."""
    busy = np.cumsum(_day_weights(*parameters.day)) * _BUCKET_SECONDS
    spent = np.cumsum(np.exp(rng.gamma(*parameters.gap, count)))
    # A day's weights sum to a day, so that busy time passes as fast as real time, on average.
    days, rest = np.divmod(spent, busy[-1])
    ends = _BUCKET_SECONDS * np.arange(BUCKETS + 1)
    return np.asarray(np.rint(days * ends[-1] + np.interp(rest, np.concatenate([[0.0], busy]), ends)))


def _day_weights(shape: float, scale: float) -> Array:
    """Relative rate of arrivals in each half-hour from midnight on, 1 on average."""
    bucket = np.arange(_FIRST_BUCKET, _FIRST_BUCKET + BUCKETS)
    points = np.linspace(-0.5, 0.5, 33)[None] + bucket[:, None]
    density = np.exp((shape - 1) * np.log(points) - points / scale - math.lgamma(shape) - shape * math.log(scale))
    weights = np.empty(BUCKETS)
    weights[bucket % BUCKETS] = density.mean(1)
    return np.asarray(weights / weights.mean())
