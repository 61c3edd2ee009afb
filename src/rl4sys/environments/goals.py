"""Small environments with goals: a point that must come to rest at its goal, and one between four equal goals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.experience import Array
from rl4sys.state import State

GoalObservation: TypeAlias = dict[str, Array]
"""What environments with goals show: `observation`, `achieved_goal` and `desired_goal`."""
DRAG = 0.5
"""The share of its speed that the point loses in a step, so that a full push in the end moves it by PUSH / DRAG."""
PUSH = 0.05
"""How much one step's push of 1 adds to the speed, in lengths per step; the arena reaches from −1 to 1."""


class PointReach(gymnasium.Env[Any, Array]):
    """Push a point with inertia to a goal and keep it there: −1 for each step away from the goal, 0 near it.

    `observation` is position and velocity, `achieved_goal` the position, `desired_goal` where it should be. Start
    and goal are drawn anywhere in the arena, and walls stop the point. There is no termination: a time limit truncates.
    """

    def __init__(self, dimensions: int = 2, tolerance: float = 0.1) -> None:
        if dimensions < 1:
            raise ValueError(f"dimensions={dimensions} leaves no dimension to move in; choose at least 1.")
        if tolerance <= 0.0:
            raise ValueError(f"tolerance={tolerance} can never be met; choose a distance above 0, such as 0.1.")
        self._dimensions, self._tolerance = dimensions, tolerance
        self.action_space = spaces.Box(-1.0, 1.0, (dimensions,), np.float32)
        place = spaces.Box(-1.0, 1.0, (dimensions,), np.float32)
        self.observation_space = spaces.Dict(
            {
                "observation": spaces.Box(-1.0, 1.0, (2 * dimensions,), np.float32),
                "achieved_goal": place,
                "desired_goal": place,
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[GoalObservation, dict[str, Any]]:
        super().reset(seed=seed)
        self._position, self._goal = self.np_random.uniform(-1.0, 1.0, (2, self._dimensions)).astype(np.float32)
        self._velocity = np.zeros_like(self._position)
        observation = self._see()
        return observation, {"is_success": self._is_near(observation)}

    def step(self, action: Array) -> tuple[GoalObservation, float, bool, bool, dict[str, Any]]:
        push = np.float32(PUSH) * np.clip(np.asarray(action, np.float32), -1.0, 1.0)
        self._velocity = np.float32(1.0 - DRAG) * self._velocity + push
        moved = self._position + self._velocity
        self._position = np.clip(moved, -1.0, 1.0)
        self._velocity[moved != self._position] = 0.0
        observation = self._see()
        info: dict[str, Any] = {"is_success": self._is_near(observation)}
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], info)
        return observation, float(reward), False, False, info

    def compute_reward(self, achieved: Array, desired: Array, info: Mapping[str, Any]) -> Array:
        """The reward for being at `achieved` when `desired` is asked for: from [..., d] to float32 [...]."""
        away = np.linalg.norm(achieved - desired, axis=-1) > self._tolerance
        return -np.asarray(away, np.float32)

    def get_state(self) -> State:
        """Where the point is, how fast, and where it should be."""
        return {"position": self._position.copy(), "velocity": self._velocity.copy(), "goal": self._goal.copy()}

    def set_state(self, state: State) -> None:
        """Continue from what `get_state` returned."""
        self._position, self._velocity, self._goal = (
            np.array(state[name], np.float32) for name in ("position", "velocity", "goal")
        )

    def _see(self) -> GoalObservation:
        return {
            "observation": np.concatenate([self._position, self._velocity]),
            "achieved_goal": self._position.copy(),
            "desired_goal": self._goal.copy(),
        }

    def _is_near(self, observation: GoalObservation) -> bool:
        return float(self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})) == 0.0


GOALS = np.array([[5.0, 0.0], [0.0, 5.0], [-5.0, 0.0], [0.0, -5.0]])
"""Where the goals are: east, north, west, south."""
WALL = 7.0
"""How far the plane reaches in each direction."""
RADIUS = 1.0
"""A goal is reached from within this distance."""


class MultiGoal(gymnasium.Env[Array, Array]):
    """Move a point by up to 1 along each axis per step, from near the middle to any of four goals.

    The goals are equally good, which shows whether a policy has several modes. Each step costs the distance to the
    nearest goal; reaching one gives `goal_reward` and terminates. The observation is the position. `info["goal"]` is
    the number of the goal that was reached.
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


def register_goals() -> None:
    """Make these environments known to Gymnasium."""
    for name, steps in (("PointReach", 50), ("MultiGoal", 30)):
        if f"rl4sys/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                f"rl4sys/{name}-v0",
                entry_point=f"{__name__}:{name}",
                max_episode_steps=steps,
                disable_env_checker=True,
            )
