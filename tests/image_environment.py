"""A small environment with image observations, and a network that learns from them quickly."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

SIZE = 12
COMET = "tests/Comet-v0"
PIXELS = {"size": SIZE, "stack": 2}
NETWORK = {"type": "cnn", "filters": [8], "kernels": [4], "strides": [2], "hidden_dims": [32]}


class Comet(gymnasium.Env[Any, Any]):
    """A bar that moves to the left or to the right and wraps around; one frame does not show its direction.

    From the second step on action 1 earns 1 if the bar moves to the right, else −1, and action 0 the opposite. A
    continuous action is penalised by its distance from 0.5 or, if the bar moves to the left, from −0.5. Images have
    12 · `scale` pixels.
    """

    metadata = {"render_modes": ["rgb_array"]}
    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)

    def __init__(self, continuous: bool = False, scale: int = 1, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self._continuous, self._scale = continuous, scale
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32) if continuous else spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        column, flies_right = self.np_random.integers((SIZE, 2)).tolist()
        self._place = [column, flies_right, 0]
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        column, flies_right, age = self._place
        self._place = [(column + (2 if flies_right else -2)) % SIZE, flies_right, age + 1]
        if self._continuous:
            reward = -abs(float(action[0]) - (flies_right - 0.5))
        else:
            reward = 1.0 if action == flies_right else -1.0
        return self._observation(), reward if age else 0.0, age == 3, False, {}

    def render(self) -> Any:
        frame = np.zeros((SIZE, SIZE, 3), np.uint8)
        frame[:, self._place[0]] = 255
        return frame.repeat(self._scale, 0).repeat(self._scale, 1)

    def get_state(self) -> Any:
        return {"place": list(self._place)}

    def set_state(self, state: Any) -> None:
        self._place = list(state["place"])

    def _observation(self) -> Any:
        return np.array([self._place[2] / 4], np.float32)


if COMET not in gymnasium.registry:
    gymnasium.register(COMET, entry_point=Comet)
