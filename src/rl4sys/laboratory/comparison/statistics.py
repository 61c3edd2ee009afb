"""What can be said from a few runs: interquartile means, bootstrap intervals, the odds of being better.

After Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (arXiv:2108.13264).
Scores come in strata, one per task: a bootstrap draws runs anew within each of them, never across.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
RESAMPLES = 50_000
_DRAWN_AT_ONCE = 2_000_000
"""Scores that are drawn before they are summed up, so that memory stays bounded."""
_CURVES_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with a 95 % interval; without one where a single run gives no idea of chance."""

    value: float
    low: float | None
    high: float | None

    def complement(self) -> Estimate:
        """What is left to one: the odds of the other side."""
        low = None if self.high is None else 1 - self.high
        return Estimate(1 - self.value, low, None if self.low is None else 1 - self.low)

    def facts(self) -> dict[str, float | None]:
        """The estimate for scripts."""
        return {"value": self.value, "low": self.low, "high": self.high}


def iqm(scores: Scores) -> Scores:
    """The mean of the middle half along the first axis: a quarter of it, rounded down, is left out at either end."""
    cut = len(scores) // 4
    middle: Scores = np.sort(scores, axis=0)[cut : len(scores) - cut].mean(axis=0)
    return middle


def estimate_iqm(strata: Sequence[Scores], rng: np.random.Generator, resamples: int = RESAMPLES) -> Estimate:
    """The interquartile mean of all scores, with a stratified bootstrap interval."""
    value = float(iqm(np.concatenate(strata)))
    if all(len(scores) == 1 for scores in strata):
        return Estimate(value, None, None)
    draws = [iqm(np.concatenate(drawn)) for drawn in _redrawn(strata, rng, resamples)]
    return _estimate(value, draws)


def probability_of_improvement(
    ours: Sequence[Scores], theirs: Sequence[Scores], rng: np.random.Generator, resamples: int = RESAMPLES
) -> Estimate:
    """How likely a run of ours beats one of theirs on the same task, averaged over tasks; a tie counts half."""
    value = float(_odds(ours, theirs))
    if all(len(scores) == 1 for scores in (*ours, *theirs)):
        return Estimate(value, None, None)
    draws = [_odds(drawn[: len(ours)], drawn[len(ours) :]) for drawn in _redrawn([*ours, *theirs], rng, resamples)]
    return _estimate(value, draws)


def iqm_band(curves: Scores, rng: np.random.Generator, resamples: int = 2_000) -> tuple[Scores, Scores, Scores]:
    """The interquartile mean of curves [runs, points] with its pointwise 95 % interval; runs are drawn as wholes."""
    turns = (
        rng.integers(len(curves), size=(len(curves), _CURVES_AT_ONCE)) for _ in range(resamples // _CURVES_AT_ONCE)
    )
    low, high = np.percentile(np.concatenate([iqm(curves[drawn]) for drawn in turns]), [2.5, 97.5], axis=0)
    return iqm(curves), low, high


def _redrawn(strata: Sequence[Scores], rng: np.random.Generator, resamples: int) -> Iterator[list[Scores]]:
    """Each stratum drawn anew with replacement, as [runs, draws], some draws at a time."""
    runs = sum(len(scores) for scores in strata)
    left = resamples
    while left > 0:
        draws = min(left, max(1, _DRAWN_AT_ONCE // runs))
        yield [scores[rng.integers(len(scores), size=(len(scores), draws))] for scores in strata]
        left -= draws


def _odds(ours: Sequence[Scores], theirs: Sequence[Scores]) -> Scores:
    """The share of pairs that ours wins [draws], the mean over strata of arrays [runs, draws]."""
    shares = []
    for mine, other in zip(ours, theirs, strict=True):
        wins = sum((row > other).sum(axis=0) + 0.5 * (row == other).sum(axis=0) for row in mine)
        shares.append(wins / (len(mine) * len(other)))
    odds: Scores = np.mean(shares, axis=0)
    return odds


def _estimate(value: float, draws: Sequence[Scores]) -> Estimate:
    low, high = np.percentile(np.concatenate(draws), [2.5, 97.5])
    return Estimate(value, float(low), float(high))
