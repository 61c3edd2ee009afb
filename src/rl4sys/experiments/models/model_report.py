"""Compares the model of a run with fresh episodes: open-loop predictions, calibration, disagreement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from rl4sys.checkpoints import Checkpoints
from rl4sys.collection import SteppedSource
from rl4sys.config import ConfigError
from rl4sys.dynamics import (
    LEVELS,
    Forecast,
    Truth,
    copy_last_error,
    coverage,
    disagreement,
    open_loop_error,
    reward_r2,
)
from rl4sys.engine import ALGORITHMS
from rl4sys.environments import Grade
from rl4sys.experience import Array, Arrays, Segment, Sequences
from rl4sys.experiments.components import Components
from rl4sys.experiments.config import load_experiment
from rl4sys.experiments.run_directory import RunDirectory
from rl4sys.seeding import Seeds
from rl4sys.weights import Version

_FAR = 3.0
"""Observations off the data have so many times its standard deviation."""
_LANES = 4


@runtime_checkable
class ModelBased(Protocol):
    """An algorithm that learns a model."""

    def forecast(self, sequences: Sequences, context: int) -> Forecast:
        """What follows the first `context` rows of sequences, given their actions."""


@dataclass(frozen=True, slots=True)
class ModelReport:
    """What was found about the model of a run."""

    step: int
    """Environment steps that the model was learned from."""
    fresh_steps: int
    """Steps of fresh experience that it was compared with."""
    open_loop: Array
    """[steps]: error of predictions so many steps ahead, in standard deviations of the observation."""
    copy_last: Array
    """The same for the guess that nothing changes."""
    reward_r2: float
    """Share of the variance of rewards that is predicted, one step ahead."""
    coverage: Array | None
    """How often intervals of the probabilities `LEVELS` hold; None for a model without standard deviations."""
    disagreement: float
    """Standard deviation over members one step ahead, in standard deviations of the change."""
    disagreement_off_data: float
    """The same for observations spread three times as far as the data."""


def report_on_model(
    directory: RunDirectory, *, steps: int = 1_000, horizon: int = 15, context: int = 1, seed: int = 0
) -> ModelReport:
    """Compare the newest model of a run with about `steps` fresh steps of its explore policy."""
    config = load_experiment(directory.config)
    loaded = Checkpoints(directory.checkpoints, config.training.keep_checkpoints).load_policy(None)
    components = Components(config, torch.device("cpu"), Grade.E3)
    algorithm = components.algorithm()
    if not isinstance(algorithm, ModelBased):
        raise ConfigError(
            f"{directory.path} was trained with {ALGORITHMS.name_of(config.algorithm)}, which learns no model. "
            f"Name a run of a model-based algorithm, such as pets."
        )
    state = loaded.state["learner"]
    algorithm.train_state.restore(state["algorithm"])
    lanes = config.environment.lanes(Seeds(seed), _LANES, Grade.E3)
    source = SteppedSource(lanes, algorithm.policies.explore, -(-steps // _LANES), Seeds(seed).integer("decisions"))
    try:
        segments = source.collect(Version(0, state["store"]["blob"])).segments
    finally:
        source.close()
    ahead, single = windows(segments, context + horizon, horizon), windows(segments, context + 1, 1)
    return compare(algorithm, ahead, single, context, loaded.step, np.random.default_rng(seed))


def compare(
    model: ModelBased, ahead: Sequences, single: Sequences, context: int, step: int, rng: np.random.Generator
) -> ModelReport:
    """The report about sequences without a break: some with many rows after the context, many with one."""
    truth, single_truth = truth_of(ahead, context), truth_of(single, context)
    forecast = model.forecast(single, context)
    elsewhere = {name: _far_from(array, rng) for name, array in single.observation.items()}
    off_data = model.forecast(replace(single, observation=elsewhere), context)
    return ModelReport(
        step,
        len(single_truth.last),
        open_loop_error(model.forecast(ahead, context), truth),
        copy_last_error(truth),
        reward_r2(forecast, single_truth),
        coverage(forecast, single_truth, LEVELS),
        disagreement(forecast, single_truth.change_deviation),
        disagreement(off_data, single_truth.change_deviation),
    )


def truth_of(sequences: Sequences, context: int) -> Truth:
    """What followed the first `context` rows."""
    seen = flat(sequences.observation)
    return Truth(seen[:, context - 1], seen[:, context:], sequences.reward[:, context - 1 : -1])


def windows(segments: Sequence[Segment], length: int, stride: int) -> Sequences:
    """Sequences of so many rows, each within one segment, that begin every `stride` rows."""
    pieces = [
        (segment, slice(first, first + length))
        for segment in segments
        for first in range(0, segment.steps + 2 - length, stride)
    ]
    if not pieces:
        raise ConfigError(
            f"No episode has {length} rows in a row: lower --horizon, or raise --steps, which are shared by {_LANES} "
            f"environments."
        )
    observation = {
        name: np.stack([segment.observation[name][rows] for segment, rows in pieces])
        for name in pieces[0][0].observation
    }
    # The last row of a segment has an observation only.
    action, reward = (
        np.stack([_padded(array, rows) for array, rows in columns])
        for columns in zip(*(((s.action, rows), (s.reward, rows)) for s, rows in pieces), strict=True)
    )
    shape = (len(pieces), length)
    acted = np.broadcast_to(np.arange(length) < length - 1, shape)
    return Sequences(
        observation=observation,
        action=action,
        reward=reward,
        discount=np.ones(shape, np.float32),
        acted=acted,
        is_first=np.zeros(shape, np.bool_),
        age=np.zeros(shape, np.int32),
        extras={},
        carry={},
        streams=(),
    )


def flat(observation: Arrays) -> Array:
    """Observations [B, L, …] as [B, L, n], with bytes as numbers from 0 to 1."""
    parts = [
        (array / np.float32(255.0) if array.dtype == np.uint8 else array).reshape(*array.shape[:2], -1)
        for array in observation.values()
    ]
    return np.concatenate(parts, axis=-1).astype(np.float32)


def _padded(array: Array, rows: slice) -> Array:
    found = array[rows]
    return found if len(found) == rows.stop - rows.start else np.concatenate([found, np.zeros_like(array[:1])])


def _far_from(array: Array, rng: np.random.Generator) -> Array:
    """Normal numbers around the mean of the data, with a multiple of its standard deviation."""
    mean, deviation = array.mean(axis=(0, 1)), array.std(axis=(0, 1))
    far: Array = (mean + _FAR * deviation * rng.standard_normal(array.shape)).astype(array.dtype)
    return far
