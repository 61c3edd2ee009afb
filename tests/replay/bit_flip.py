"""An environment with goals: flip one bit at a time until they match. Random actions rarely succeed."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.experience import Array

NAME = "tests/BitFlip-v0"


class BitFlip(gymnasium.Env[Any, Any]):
    """Terminates with reward 0 when the bits match the goal; every other step has reward −1."""

    def __init__(self, bits: int = 6) -> None:
        self._count = bits
        goal = spaces.Box(0.0, 1.0, (bits,), np.float32)
        self.observation_space = spaces.Dict({"achieved_goal": goal, "desired_goal": goal})
        self.action_space = spaces.Discrete(bits)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, Array], dict[str, Any]]:
        super().reset(seed=seed)
        self._bits, self._goal = self.np_random.integers(0, 2, (2, self._count)).astype(np.float32)
        return self._observe(), {}

    def step(self, action: int) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        self._bits[action] = 1.0 - self._bits[action]
        over = bool(self.compute_terminated(self._bits, self._goal, {}))
        return self._observe(), float(over) - 1.0, over, False, {}

    def compute_reward(self, achieved: Array, desired: Array, info: dict[str, Any]) -> Array:
        return np.asarray(self.compute_terminated(achieved, desired, info), np.float32) - 1.0

    def compute_terminated(self, achieved: Array, desired: Array, info: dict[str, Any]) -> Any:
        return (achieved == desired).all(axis=-1)

    def _observe(self) -> dict[str, Array]:
        return {"achieved_goal": self._bits.copy(), "desired_goal": self._goal.copy()}


if NAME not in gymnasium.registry:
    gymnasium.register(NAME, entry_point=BitFlip, max_episode_steps=8, disable_env_checker=True)
