"""The quality of a model: its predictions over several steps, its intervals, and where its members disagree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from rl4sys.experience import Array

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Probabilities of the intervals that are compared with how often they hold."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What each member of a model predicts for B sequences, from actions alone (open loop).

    Observations are flat. A model that is no ensemble has one member.
    """

    observation: Array
    """[members, B, steps, n]: after each of the actions."""
    reward: Array
    """[members, B, steps]."""
    observation_std: Array | None = None
    """[members, B, n]: standard deviations of the first prediction, where the model has them."""
    reward_std: Array | None = None
    """[members, B]."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What happened to the same sequences."""

    last: Array
    """[B, n]: the observation from which a forecast starts."""
    observation: Array
    """[B, steps, n]."""
    reward: Array
    """[B, steps]."""

    @property
    def change_deviation(self) -> Array:
        """[n]: the standard deviation of the change in one step; 1 for what is constant."""
        deviation = (self.observation[:, 0] - self.last).std(axis=0)
        return np.where(deviation > 0.0, deviation, 1.0)

    @property
    def deviation(self) -> Array:
        """[n]: the standard deviation of observations; 1 for what is constant."""
        deviation = self.observation.reshape(-1, self.observation.shape[-1]).std(axis=0)
        return np.where(deviation > 0.0, deviation, 1.0)


def open_loop_error(forecast: Forecast, truth: Truth) -> Array:
    """[steps]: the root mean squared error of the mean over members, in standard deviations of the observation."""
    return _error(forecast.observation.mean(axis=0), truth)


def copy_last_error(truth: Truth) -> Array:
    """The same error of the guess that nothing changes."""
    return _error(np.broadcast_to(truth.last[:, None], truth.observation.shape), truth)


def reward_r2(forecast: Forecast, truth: Truth) -> float:
    """The share of the variance of the first reward that is predicted: 1 is perfect, 0 is no better than its mean."""
    true = truth.reward[:, 0].astype(np.float64)
    residual = np.square(forecast.reward[:, :, 0].mean(axis=0) - true).mean()
    return float(1.0 - residual / max(true.var(), 1e-12))


def coverage(forecast: Forecast, truth: Truth, levels: Sequence[float] = LEVELS) -> Array | None:
    """How often the central intervals of each member's first prediction hold the truth, at these probabilities.

    Over all members, observations and rewards. None for a model without standard deviations.
    """
    if forecast.observation_std is None or forecast.reward_std is None:
        return None
    distance = [
        (forecast.observation[:, :, 0] - truth.observation[:, 0]) / forecast.observation_std,
        ((forecast.reward[:, :, 0] - truth.reward[:, 0]) / forecast.reward_std)[..., None],
    ]
    deviations = np.abs(np.concatenate(distance, axis=-1))
    return np.array([(deviations < NormalDist().inv_cdf(0.5 + level / 2.0)).mean() for level in levels])


def disagreement(forecast: Forecast, change_deviation: Array) -> float:
    """The standard deviation over members of the first predicted change, in those of the data; 0 for one member."""
    return float((forecast.observation[:, :, 0].std(axis=0) / change_deviation).mean())


def _error(predicted: Array, truth: Truth) -> Array:
    squares = np.square((predicted - truth.observation) / truth.deviation)
    error: Array = np.sqrt(squares.mean(axis=(0, 2)))
    return error
