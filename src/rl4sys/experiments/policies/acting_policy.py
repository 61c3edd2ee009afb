"""A trained policy that acts in a loop of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rl4sys.config import ConfigError
from rl4sys.environments import AtariConfig, EnvironmentConfig, GymnasiumConfig, action_converter
from rl4sys.environments.spaces import MASK, ObservationConverter
from rl4sys.experience import Array, StreamKey
from rl4sys.policy import KeyedNoise, NumpyPolicy, PolicySpec


class ActingPolicy:
    """Turns observations of an environment into actions for its `step`.

    The environment is the one that the config makes: with `frame_skip`, `pixels` or `flatten_obs`, observations are
    those of the wrapped one.
    """

    def __init__(self, spec: PolicySpec, weights: Array, environment: EnvironmentConfig, seed: int = 0) -> None:
        """`seed` matters to policies that draw their actions."""
        if not isinstance(environment, GymnasiumConfig | AtariConfig):
            raise ConfigError(
                f"Environment '{environment.name}' has no Gymnasium spaces to convert observations with; act with "
                f"rl4sys.policy.NumpyPolicy instead."
            )
        sample = environment.maker()()
        mask = next((array for array in spec.observation if array.name == MASK), None)
        self._observe = ObservationConverter(sample.observation_space, mask, spec.action)
        self._commands = action_converter(sample.action_space)
        sample.close()
        self._policy = NumpyPolicy(spec, np.array(weights))
        self._noise = KeyedNoise(seed, [StreamKey("acting")], self._policy.noise_size)
        self._rows = self._observe.empty(1)
        self._decisions = 0
        self.reset()

    def reset(self) -> None:
        """Begin an episode: a policy with memory starts without any."""
        self._carry = self._policy.initial_carry(1)

    def act(self, observation: Any, info: Mapping[str, Any] | None = None) -> Any:
        """The action for one observation as the environment returned it; an action mask is read from `info`."""
        self._observe.fill(self._rows, [observation], [info or {}])
        decision = self._policy.act(self._rows, self._noise.at(self._decisions), self._carry)
        self._carry = {name: memory.copy() for name, memory in decision.carry.items()}
        self._decisions += 1
        return self._commands(decision.action)[0]
