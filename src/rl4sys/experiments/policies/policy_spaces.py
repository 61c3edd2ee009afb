"""The spaces that a policy converts observations and actions with: those of its environment, or made from its spec."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.config import ConfigError
from rl4sys.environments import AtariConfig, EnvironmentConfig, GymnasiumConfig
from rl4sys.experience import ArraySpec
from rl4sys.policy import BoxAction, DiscreteAction, MultiDiscreteAction, PolicySpec

_log = logging.getLogger(__name__)

Space = gymnasium.Space[Any]


class PolicySpaces(NamedTuple):
    """What a policy observes and does, in terms of Gymnasium."""

    observation: Space
    action: Space


def spaces_of(spec: PolicySpec, environment: EnvironmentConfig | None) -> PolicySpaces:
    """The spaces of the environment if it can be made here, and otherwise those that follow from the policy itself.

    In the latter case observations are arrays as the policy has them: choices are one-hot vectors.
    """
    if isinstance(environment, GymnasiumConfig | AtariConfig):
        try:
            sample = environment.maker()()
        except Exception as error:  # whatever prevents an environment from being made, the policy can still decide
            _log.warning("%s cannot be made here (%s); the policy takes arrays.", environment.name, error)
        else:
            found = PolicySpaces(sample.observation_space, sample.action_space)
            sample.close()
            return found
    return PolicySpaces(_observation_space(spec), _action_space(spec))


def batch_size(space: Space, observation: Any) -> int | None:
    """How many observations these are; None if it is a single one.

    A batch is what a vector environment returns, or a list of single observations.
    """
    match space:
        case spaces.Dict():
            if not isinstance(observation, Mapping):
                return len(observation)
            name, part = next(iter(space.items()))
            return batch_size(part, observation[name])
        case spaces.Tuple():
            return batch_size(space[0], observation[0])
        case spaces.Sequence():
            return None
    values = np.asarray(observation)
    return len(values) if values.ndim == len(space.shape or ()) + 1 else None


def _observation_space(spec: PolicySpec) -> Space:
    parts: dict[str, Space] = {array.name: _box(array) for array in spec.observation}
    return parts["observation"] if list(parts) == ["observation"] else spaces.Dict(parts)


def _box(array: ArraySpec) -> Space:
    if array.dtype == "uint8":
        return spaces.Box(0, 255, array.shape, np.uint8)
    return spaces.Box(-np.inf, np.inf, array.shape, np.float32)


def _action_space(spec: PolicySpec) -> Space:
    match spec.action:
        case DiscreteAction(n=n, start=start):
            return spaces.Discrete(n, start=start)
        case MultiDiscreteAction(sizes=sizes):
            return spaces.MultiDiscrete(list(sizes))
        case BoxAction(low=low, high=high):
            return spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)
    raise ConfigError(
        "Without its environment this policy cannot be used: its actions mix choices and numbers. Install what the "
        "environment needs, or act with rl4sys.policy.NumpyPolicy."
    )
