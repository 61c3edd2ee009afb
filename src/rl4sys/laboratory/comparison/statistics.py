"""Statistics of a few runs: interquartile means, bootstrap intervals, probability of improvement.

After Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (arXiv:2108.13264).
Scores come in strata, one per task: a bootstrap resamples runs within each stratum, never across.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
RESAMPLES = 50_000
_RESAMPLED_AT_ONCE = 2_000_000
"""Scores that are resampled at once, to bound the memory."""
_CURVES_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with a 95 % interval; without one if there is a single run."""

    value: float
    low: float | None
    high: float | None

    def complement(self) -> Estimate:
        """One minus the estimate: the probability of the other side."""
        low = None if self.high is None else 1 - self.high
        return Estimate(1 - self.value, low, None if self.low is None else 1 - self.low)

    def json_values(self) -> dict[str, float | None]:
        """The estimate for `--json`."""
        return {"value": self.value, "low": self.low, "high": self.high}


def iqm(scores: Scores) -> Scores:
    """The mean of the middle half along the first axis: a quarter, rounded down, is dropped at either end."""
    cut = len(scores) // 4
    middle: Scores = np.sort(scores, axis=0)[cut : len(scores) - cut].mean(axis=0)
    return middle


def estimate_iqm(strata: Sequence[Scores], rng: np.random.Generator, resamples: int = RESAMPLES) -> Estimate:
    """The interquartile mean of all scores, with a stratified bootstrap interval."""
    value = float(iqm(np.concatenate(strata)))
    if all(len(scores) == 1 for scores in strata):
        return Estimate(value, None, None)
    draws = [iqm(np.concatenate(drawn)) for drawn in _resampled(strata, rng, resamples)]
    return _estimate(value, draws)


def probability_of_improvement(
    ours: Sequence[Scores], theirs: Sequence[Scores], rng: np.random.Generator, resamples: int = RESAMPLES
) -> Estimate:
    """The probability that a run of ours beats one of theirs on a task, averaged over tasks; ties count half."""
    value = float(_win_rate(ours, theirs))
    if all(len(scores) == 1 for scores in (*ours, *theirs)):
        return Estimate(value, None, None)
    both = _resampled([*ours, *theirs], rng, resamples)
    draws = [_win_rate(drawn[: len(ours)], drawn[len(ours) :]) for drawn in both]
    return _estimate(value, draws)


def iqm_band(curves: Scores, rng: np.random.Generator, resamples: int = 2_000) -> tuple[Scores, Scores, Scores]:
    """The interquartile mean of curves [runs, points] with its pointwise 95 % interval; whole runs are resampled."""
    chunks = (
        rng.integers(len(curves), size=(len(curves), _CURVES_AT_ONCE)) for _ in range(resamples // _CURVES_AT_ONCE)
    )
    low, high = np.percentile(np.concatenate([iqm(curves[drawn]) for drawn in chunks]), [2.5, 97.5], axis=0)
    return iqm(curves), low, high


def _resampled(strata: Sequence[Scores], rng: np.random.Generator, resamples: int) -> Iterator[list[Scores]]:
    """Each stratum resampled with replacement, as [runs, draws], some draws at a time."""
    runs = sum(len(scores) for scores in strata)
    left = resamples
    while left > 0:
        draws = min(left, max(1, _RESAMPLED_AT_ONCE // runs))
        yield [scores[rng.integers(len(scores), size=(len(scores), draws))] for scores in strata]
        left -= draws


def _win_rate(ours: Sequence[Scores], theirs: Sequence[Scores]) -> Scores:
    """The share of pairs that ours wins [draws], the mean over strata of arrays [runs, draws]."""
    shares = []
    for mine, other in zip(ours, theirs, strict=True):
        wins = sum((row > other).sum(axis=0) + 0.5 * (row == other).sum(axis=0) for row in mine)
        shares.append(wins / (len(mine) * len(other)))
    rate: Scores = np.mean(shares, axis=0)
    return rate


def _estimate(value: float, draws: Sequence[Scores]) -> Estimate:
    low, high = np.percentile(np.concatenate(draws), [2.5, 97.5])
    return Estimate(value, float(low), float(high))
