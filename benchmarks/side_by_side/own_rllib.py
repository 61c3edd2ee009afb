"""PPO of RLlib, 64×64, in a loop of its own: environment and learner in this process."""

from __future__ import annotations

from typing import Any

import gymnasium
from ray.tune.registry import register_env
from rllib_config import ROLLOUT, ppo
from systems import Work

_systems: list[gymnasium.Env[Any, Any]] = []


def _system(_: Any) -> gymnasium.Env[Any, Any]:
    """The environment itself; Ray would copy one that a function encloses."""
    return _systems[-1]


class RllibLoop:
    """Trains in the loop of the library."""

    def __init__(self, work: Work, seed: int) -> None:
        self._seed, self._updates = seed, 0

    def train(self, environment: gymnasium.Env[Any, Any]) -> None:
        """Train until the environment ends it."""
        _systems.append(environment)
        register_env("side-by-side", _system)
        config = ppo(self._seed).environment("side-by-side").env_runners(num_env_runners=0, num_envs_per_env_runner=1)
        algorithm = config.build_algo()
        while True:
            try:
                algorithm.train()
            except RuntimeError as error:
                # RLlib hides what the environment raised.
                raise error.__cause__ or error from None
            self._updates += 1

    def done(self) -> dict[str, Any]:
        """What it did."""
        return {"updates": self._updates, "used": self._updates * ROLLOUT}
