"""A trained policy that acts in a loop of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rl4sys.environments import EnvironmentConfig, action_converter
from rl4sys.environments.spaces import MASK, ObservationConverter, action_batch_converter, flat_mask
from rl4sys.experience import Array, Arrays, StreamKey
from rl4sys.experiments.policies.policy_spaces import batch_size, spaces_of
from rl4sys.policy import KeyedNoise, NumpyPolicy, PolicySpec


class ActingPolicy:
    """Turns observations of an environment into actions for its `step`, one at a time or many at once.

    The environment is the one that the config makes: with `frame_skip`, `pixels` or `flatten_obs`, observations are
    those of the wrapped one. A policy with memory keeps it from one call to the next.
    """

    def __init__(
        self, spec: PolicySpec, weights: Array, environment: EnvironmentConfig | None = None, seed: int = 0
    ) -> None:
        """`seed` matters to policies that draw their actions."""
        self.spec = spec
        self.observation_space, self.action_space = spaces_of(spec, environment)
        mask = next((array for array in spec.observation if array.name == MASK), None)
        self._observe = ObservationConverter(self.observation_space, mask, spec.action)
        self._single = action_converter(self.action_space)
        self._batch = action_batch_converter(self.action_space)
        self._policy = NumpyPolicy(spec, np.array(weights))
        self._seed, self._decisions, self._count = seed, 0, 0
        self._carry: dict[str, Array] = {}
        self._noise = KeyedNoise(seed, [StreamKey("acting")], self._policy.noise_size)
        self._begin(1)

    def reset(self) -> None:
        """Begin an episode: a policy with memory starts without any."""
        self._begin(1)

    def act(self, observation: Any, info: Mapping[str, Any] | None = None, starts: Any = None) -> Any:
        """The action for an observation as the environment returned it, or the actions for a batch of them.

        A batch is what a vector environment returns, or a list of observations; its actions fit `step` of a vector
        environment. An action mask is read from `info`. `starts` says of each row whether an episode begins with it,
        so that a policy with memory forgets the one before.
        """
        rows = batch_size(self.observation_space, observation)
        count = 1 if rows is None else rows
        if count != self._count:
            self._begin(count)
        if starts is not None:
            for memory in self._carry.values():
                memory[np.atleast_1d(np.asarray(starts, bool))] = 0.0
        arrays = self._arrays(observation, info or {}, is_batch=rows is not None)
        decision = self._policy.act(arrays, self._noise.at(self._decisions), self._carry)
        self._carry = {name: memory.copy() for name, memory in decision.carry.items()}
        self._decisions += 1
        return self._single(decision.action)[0] if rows is None else self._batch(decision.action)

    def _begin(self, count: int) -> None:
        """Start with a number of rows, without memory."""
        self._count = count
        self._carry = dict(self._policy.initial_carry(count))
        self._noise = KeyedNoise(
            self._seed, [StreamKey("acting", "agent", row) for row in range(count)], self._policy.noise_size
        )

    def _arrays(self, observation: Any, info: Mapping[str, Any], *, is_batch: bool) -> Arrays:
        rows = self._observe.empty(self._count)
        if not is_batch:
            self._observe.fill(rows, [observation], [info])
        elif isinstance(observation, list):
            infos = [{name: values[row] for name, values in info.items()} for row in range(self._count)]
            self._observe.fill(rows, observation, infos)
        else:
            masks = [flat_mask(mask) for mask in info[MASK]] if MASK in info else []
            self._observe.fill_batch(rows, observation, np.array(masks, bool))
        return rows
