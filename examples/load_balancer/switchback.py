"""Compares rules that share one service: random blocks of time, one rule each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rl4sys.environments.balancing.requests import Disturbance

BLOCK = 10.0
"""Seconds, without a disturbance."""
BURN_IN = 2.0
"""Seconds at the beginning of a block that still show the rule before it."""
_RESAMPLES = 10_000


class Block(NamedTuple):
    """A span of time in which one rule decided."""

    rule: str
    start: float
    end: float


class Interval(NamedTuple):
    """A ratio with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RuleReport:
    """How a rule did over all its blocks."""

    rule: str
    blocks: int
    requests: int
    mean: float
    """Seconds, over all requests."""
    p99: float
    mean_ratio: Interval
    """The geometric mean over blocks of the mean latency, relative to the same of the baseline."""
    p99_ratio: Interval


def plan(
    rules: Sequence[str], blocks: int, start: float, rng: np.random.Generator, seconds: float = BLOCK
) -> list[Block]:
    """So many blocks of every rule, each of some seconds: in each round all of them, in random order."""
    order = [rules[index] for _ in range(blocks) for index in rng.permutation(len(rules))]
    return [Block(rule, start + seconds * number, start + seconds * (number + 1)) for number, rule in enumerate(order)]


def block_seconds(disturbance: Disturbance | None) -> float:
    """The length of a block; with a disturbance a whole period of it, so that every block has the same share of it."""
    return BLOCK if disturbance is None else disturbance.period


def comparison_start(earliest: float, epoch: float, disturbance: Disturbance | None) -> float:
    """When the first block begins; with a disturbance, as long before a slow part as there is time after it.

    Queues that grew while a backend was slow are then answered within the block of the rule that let them grow.
    """
    if disturbance is None:
        return earliest
    calm = disturbance.period - disturbance.slow_for
    return earliest + (epoch + calm / 2.0 - earliest) % disturbance.period


def within(block: Block, at: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which of some times count for a block: not those that still show the rule before it."""
    return (at >= block.start + BURN_IN) & (at < block.end)


def compare(
    blocks: Sequence[Block],
    at: NDArray[np.float64],
    seconds: NDArray[np.float64],
    baseline: str,
    rng: np.random.Generator,
) -> list[RuleReport]:
    """Compare rules by requests that arrived at some times and took so many seconds."""
    inside = {block: seconds[within(block, at)] for block in blocks}
    found = {
        rule: [inside[block] for block in blocks if block.rule == rule]
        for rule in dict.fromkeys(b.rule for b in blocks)
    }
    if not all(len(taken) for blocks_of in found.values() for taken in blocks_of):
        raise ValueError("A block has no request at all; the rate is too low to compare anything.")
    base = found[baseline]
    reports = []
    for rule, taken in found.items():
        together = np.concatenate(taken)
        reports.append(
            RuleReport(
                rule,
                len(taken),
                len(together),
                float(together.mean()),
                float(np.quantile(together, 0.99)),
                _ratio([each.mean() for each in taken], [each.mean() for each in base], rng),
                _ratio([np.quantile(each, 0.99) for each in taken], [np.quantile(each, 0.99) for each in base], rng),
            )
        )
    return reports


def _ratio(ours: Sequence[float], theirs: Sequence[float], rng: np.random.Generator) -> Interval:
    mine, other = np.log(ours), np.log(theirs)
    value = float(np.exp(mine.mean() - other.mean()))
    draws = _resampled_mean(mine, rng) - _resampled_mean(other, rng)
    low, high = np.exp(np.percentile(draws, [2.5, 97.5]))
    return Interval(value, float(low), float(high))


def _resampled_mean(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    drawn: NDArray[np.float64] = values[rng.integers(len(values), size=(_RESAMPLES, len(values)))].mean(axis=1)
    return drawn
