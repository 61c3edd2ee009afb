"""PPO of stable-baselines3, 64×64, behind the inverted loop."""

from __future__ import annotations

from typing import Any

from inverted_loop import InvertedEnvironment, InvertedLoop
from stable_baselines3 import PPO
from systems import Work


class Sb3:
    """Trains in a thread of the system's process."""

    def __init__(self, work: Work, seed: int) -> None:
        self._work, self._seed = work, seed
        self.loop = InvertedLoop(self._train)
        self.updates = 0

    def _train(self, loop: InvertedLoop) -> None:
        environment = InvertedEnvironment(loop, self._work.observation, self._work.action)
        self._model = PPO("MlpPolicy", environment, n_steps=2048, batch_size=64, seed=self._seed, device="cpu")
        self._model.learn(10**9)

    def close(self) -> dict[str, Any]:
        """End training; what it did."""
        self.loop.close()
        epochs = self._model.n_epochs
        return {"updates": self._model._n_updates // epochs, "recorded": 1.0, "bytes_per_decision": 0.0}
