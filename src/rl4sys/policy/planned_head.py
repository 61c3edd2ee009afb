"""A head that plans: the cross-entropy method over a dynamics model (Rubinstein, 1999; for control arXiv:1805.12114).

It searches for the sequence of actions with the highest predicted return, acts with the first of them, and plans again
at the next step. Actions are those that networks see: scaled to [−1, 1].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rl4sys.experience import Array, Arrays
from rl4sys.policy.action_spec import ActionSpec, BoxAction
from rl4sys.policy.model_runtime import ModelRuntime
from rl4sys.policy.noise import normal
from rl4sys.policy.policy_spec import Head, PolicySpec, number
from rl4sys.policy.vector_heads import Decide, scale_and_middle

MAX_PLANNED_STEPS = 1_000_000
"""Steps of all candidates that may be predicted for one decision. PlaNet's settings make 120,000."""
SEED_NUMBERS = 4
"""Uniform numbers of a decision's noise that seed its generator: 24 bits each."""


class Model(Protocol):
    """Predicts rewards and states for as many rows as there are candidates."""

    action: Array
    """[rows, …]: the actions of the next step."""
    reward: Array
    """[rows]: the rewards of the last step."""

    def start(self, state: Sequence[Array]) -> None:
        """Let every row begin in this state."""

    def step(self, generator: np.random.Generator) -> None:
        """Predict one step."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How the cross-entropy method searches."""

    horizon: int
    """Steps that are planned ahead."""
    iterations: int
    """Times that candidates are drawn and the distribution is fitted to the best of them."""
    candidates: int
    """Sequences of actions in one iteration."""
    elites: int
    """Best candidates that the distribution is fitted to."""
    initial_std: float
    """Standard deviation of every action in the first iteration, as a share of half its range."""
    min_std: float
    """The least standard deviation, in the same units."""
    momentum: float
    """Share of the last distribution that each fit keeps."""
    discount: float
    """Factor of the reward of each further step."""

    @classmethod
    def of(cls, head: Head) -> SearchSettings:
        """The settings of a head."""
        horizon, iterations, candidates, elites = (_whole(head, name) for name in _WHOLE)
        if elites > candidates:
            raise ValueError(f"A head that plans cannot fit {elites} elites of {candidates} candidates.")
        real = (number(head.settings, name, head.kind) for name in _REAL)
        return cls(horizon, iterations, candidates, elites, *real)


_WHOLE = ("horizon", "iterations", "candidates", "elites")
_REAL = ("initial_std", "min_std", "momentum", "discount")


def planned_noise_size(head: Head, action: ActionSpec) -> int:
    """How many uniform numbers one decision takes."""
    return SEED_NUMBERS + (2 * action.size + 1 if head.tensors and isinstance(action, BoxAction) else 0)


def compile_planned(spec: PolicySpec, registers: Mapping[str, Array], tensors: Mapping[str, Array]) -> Decide:
    """The function that turns noise into planned decisions, row by row: equal for any number of rows.

    `planned(state, …[, plan][; std, epsilon])`: the model's memory in order; with the setting `next`, also the plan of
    the last decision, where the search starts. With tensors, noise of deviation std is added to the action, and
    with probability epsilon it is uniform.
    """
    head, action, model = spec.head, spec.action, spec.model
    reward = head.settings.get("reward")
    if model is None or not isinstance(reward, str) or not isinstance(action, BoxAction):
        raise ValueError(
            f"Head 'planned' needs a model, a setting 'reward' and a bounded vector of actions; got the model "
            f"{'(none)' if model is None else 'as given'}, the reward {reward!r} and {action.kind} actions."
        )
    settings = SearchSettings.of(head)
    runtime = ModelRuntime(model, reward, tensors, settings.candidates)
    inputs = [registers[name] for name in head.inputs]
    states, plans = inputs[: len(model.carry)], inputs[len(model.carry) :]
    following = [registers[name] for name in head.outputs if name == head.settings.get("next")]
    explore = [tensors[name] for name in head.tensors]
    scale, middle = scale_and_middle(action)
    size, one = action.size, np.float32(1.0)

    def decide(noise: Array) -> tuple[Array, Arrays]:
        chosen = np.zeros((len(noise), size), np.float32)
        for row, numbers in enumerate(noise):
            if explore and numbers[-1] < explore[1][0]:
                # The first number of each pair makes the uniform action; nothing is planned for it.
                chosen[row] = np.float32(2.0) * numbers[SEED_NUMBERS:-1:2] - one
                for array in following:
                    array[row] = 0.0
                continue
            if row and _repeats(row, noise, inputs):
                # A batch is filled up with its last row, for which there is a plan already.
                chosen[row] = chosen[row - 1]
                for array in following:
                    array[row] = array[row - 1]
                continue
            start = plans[0][row] if plans else np.zeros((settings.horizon, size), np.float32)
            plan = search(runtime, [state[row] for state in states], start, settings, _generator(numbers))
            for array in following:
                array[row, :-1], array[row, -1] = plan[1:], 0.0
            chosen[row] = plan[0]
            if explore:
                shift = normal(numbers[None, SEED_NUMBERS:-1])[0] * explore[0]
                chosen[row] = np.clip(chosen[row] + shift, -one, one)
        return chosen * scale + middle, {}

    return decide


def search(
    model: Model,
    state: Sequence[Array],
    start: Array,
    settings: SearchSettings,
    generator: np.random.Generator,
) -> Array:
    """The mean [horizon, actions] after the last iteration, from `start`; NaN if no predicted return is finite."""
    mean = start
    std = np.full(mean.shape, settings.initial_std, np.float32)
    keep = np.float32(settings.momentum)
    shape = (settings.horizon, settings.candidates, mean.shape[1])
    for _ in range(settings.iterations):
        drawn = generator.standard_normal(shape, np.float32) * std[:, None] + mean[:, None]
        candidates = np.clip(drawn, np.float32(-1.0), np.float32(1.0))
        returns = predicted_returns(model, state, candidates, settings.discount, generator)
        if not np.isfinite(returns).any():
            return np.full(mean.shape, np.nan, np.float32)
        best = np.argpartition(-returns, settings.elites - 1)[: settings.elites]
        elites = candidates[:, best]
        mean = keep * mean + (np.float32(1.0) - keep) * elites.mean(axis=1)
        std = keep * std + (np.float32(1.0) - keep) * np.maximum(elites.std(axis=1), np.float32(settings.min_std))
    return mean


def predicted_returns(
    model: Model, state: Sequence[Array], actions: Array, discount: float, generator: np.random.Generator
) -> Array:
    """The discounted sum [candidates] of the rewards that the model predicts for actions [horizon, candidates, …].

    Minus infinity for a prediction that is not finite.
    """
    model.start(state)
    total, factor = np.zeros(actions.shape[1], np.float32), 1.0
    for action in actions:
        np.copyto(model.action, action)
        model.step(generator)
        total += np.float32(factor) * model.reward
        factor *= discount
    total[~np.isfinite(total)] = -np.inf
    return total


def _repeats(row: int, *arrays: Array | Sequence[Array]) -> bool:
    """Whether a row is the same as the one before it, in all of these arrays."""
    flat = [array for each in arrays for array in ([each] if isinstance(each, np.ndarray) else each)]
    return all(np.array_equal(array[row], array[row - 1]) for array in flat)


def _generator(noise: Array) -> np.random.Generator:
    """A generator seeded by the first numbers of a decision's noise."""
    words = [int(value) for value in noise[:SEED_NUMBERS] * np.float32(2.0**24)]
    return np.random.Generator(np.random.Philox(key=np.array([words[0] << 24 | words[1], words[2] << 24 | words[3]])))


def _whole(head: Head, name: str) -> int:
    value = head.settings.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"Setting '{name}' of {head.kind} is {value!r}; expected a whole number from 1.")
    return value
