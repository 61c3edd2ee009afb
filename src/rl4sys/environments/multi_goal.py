"""A point on a plane between four goals, all equally good: it shows whether a policy has several modes."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.experience import Array
from rl4sys.state import State

GOALS = np.array([[5.0, 0.0], [0.0, 5.0], [-5.0, 0.0], [0.0, -5.0]])
"""Where the goals are: east, north, west, south."""
WALL = 7.0
"""How far the plane reaches in each direction."""
RADIUS = 1.0
"""A goal is reached from within this distance."""


class MultiGoal(gymnasium.Env[Array, Array]):
    """Move a point by up to 1 along each axis per step, from near the middle to any of four goals.

    Each step costs the distance to the nearest goal; reaching one gives `goal_reward` and terminates. The observation
    is the position. `info["goal"]` is the number of the goal that was reached.
    """

    def __init__(self, goal_reward: float = 10.0, start_spread: float = 0.1) -> None:
        if start_spread < 0.0:
            raise ValueError(f"start_spread={start_spread} is no deviation; choose 0 or more.")
        self._goal_reward, self._start_spread = goal_reward, start_spread
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Box(-WALL, WALL, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self._position = np.clip(self.np_random.normal(0.0, self._start_spread, 2), -WALL, WALL)
        return self._see(), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        push = np.clip(np.asarray(action, np.float64), -1.0, 1.0)
        self._position = np.clip(self._position + push, -WALL, WALL)
        distance = np.hypot(*(GOALS - self._position).T)
        nearest = int(distance.argmin())
        reached = bool(distance[nearest] <= RADIUS)
        reward = -float(distance[nearest]) + (self._goal_reward if reached else 0.0)
        return self._see(), reward, reached, False, {"goal": nearest} if reached else {}

    def get_state(self) -> State:
        """Where the point is."""
        return {"position": self._position.copy()}

    def set_state(self, state: State) -> None:
        """Continue from what `get_state` returned."""
        self._position = np.array(state["position"], np.float64)

    def _see(self) -> Array:
        return self._position.astype(np.float32)


def register_multi_goal() -> None:
    """Make the environment known to Gymnasium."""
    if "rl4sys/MultiGoal-v0" not in gymnasium.registry:
        gymnasium.register(
            "rl4sys/MultiGoal-v0",
            entry_point=f"{__name__}:MultiGoal",
            max_episode_steps=30,
            disable_env_checker=True,
        )
