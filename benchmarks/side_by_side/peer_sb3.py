"""PPO of stable-baselines3, 64×64."""

from __future__ import annotations

from typing import Any

import gymnasium
from stable_baselines3 import PPO
from systems import Work

_ROLLOUT = 2048


class Sb3:
    """Trains in the loop of the library."""

    def __init__(self, work: Work, seed: int) -> None:
        self._seed = seed

    def train(self, environment: gymnasium.Env[Any, Any]) -> None:
        """Train until the environment ends it."""
        self._model = PPO("MlpPolicy", environment, n_steps=_ROLLOUT, batch_size=64, seed=self._seed, device="cpu")
        self._model.learn(10**9)

    def done(self) -> dict[str, Any]:
        """What it did."""
        updates = self._model._n_updates // self._model.n_epochs
        return {"updates": updates, "used": updates * _ROLLOUT}
