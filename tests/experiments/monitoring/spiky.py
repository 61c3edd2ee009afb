"""An environment whose reward is too large for float32 to square, now and then."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

NAME = "Spiky-v0"


class Spiky(gym.Env[np.ndarray, int]):
    """Random observations for two choices; the rewards of some steps, counted over all episodes, are huge."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, first: int = 0, last: int = 0) -> None:
        self._spikes = range(first, last)
        self._taken, self._left = 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._left = 10
        return self._seen(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._taken += 1
        self._left -= 1
        reward = 1e30 if self._taken in self._spikes else 1.0
        return self._seen(), reward, self._left == 0, False, {}

    def get_state(self) -> dict[str, Any]:
        return {"taken": self._taken, "left": self._left}

    def set_state(self, state: dict[str, Any]) -> None:
        self._taken, self._left = state["taken"], state["left"]

    def _seen(self) -> np.ndarray:
        return self.np_random.uniform(-1.0, 1.0, 2).astype(np.float32)


if NAME not in gym.registry:
    gym.register(NAME, entry_point=Spiky)
