"""Small environments and players that the tests of this folder share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.environments import Grade, Lanes, Step, VectorAdapter, make_gymnasium, random_action
from rl4sys.seeding import Seeds

SEEDS = Seeds(7)


def maker(name: str, **kwargs: Any) -> Callable[[], gymnasium.Env[Any, Any]]:
    return lambda: make_gymnasium(name, kwargs)


class Fixed(gymnasium.Env[Any, Any]):
    """Always shows the same observation and remembers the actions it was given."""

    def __init__(self, observation_space: Any, observation: Any, action_space: Any = None, info: Any = None) -> None:
        self.observation_space = observation_space
        self.action_space = action_space or spaces.Discrete(2)
        self._observation, self._info = observation, info or {}
        self.actions: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self._observation, self._info

    def step(self, action: Any) -> Any:
        self.actions.append(action)
        return self._observation, 0.0, False, False, self._info


class Walk(gymnasium.Env[Any, Any]):
    """A random walk that ends when it has gone far; `noise` makes it unrepeatable."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, noise: bool = False) -> None:
        self._noise = noise

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.position = 0.0
        return self._see(), {}

    def step(self, action: Any) -> Any:
        self.position += (1 if action else -1) * self.np_random.random()
        if self._noise:
            self.position += os.urandom(1)[0] / 255 - 0.5
        return self._see(), self.position, abs(self.position) > 3, False, {}

    def _see(self) -> Any:
        return np.array([self.position], np.float32)


class SavedWalk(Walk):
    """A random walk with a state of its own; `forgetful` does not restore it."""

    def __init__(self, forgetful: bool = False) -> None:
        super().__init__()
        self._forgetful = forgetful

    def get_state(self) -> Any:
        return {"position": self.position}

    def set_state(self, state: Any) -> None:
        if not self._forgetful:
            self.position = state["position"]


def play(lanes: Lanes | VectorAdapter, steps: int, seed: int = 0) -> list[Step]:
    """Random actions; copies of what came out."""
    rng, played = np.random.default_rng(seed), []
    for _ in range(steps):
        step = lanes.step(random_action(lanes.spec.action, lanes.observation, lanes.count, rng))
        observation = {name: array.copy() for name, array in step.observation.items()}
        played.append(step._replace(observation=observation, reward=step.reward.copy(), ending=step.ending.copy()))
    return played


def fingerprint(steps: list[Step]) -> list[bytes]:
    return [
        b"".join(
            array.tobytes()
            for array in (
                *step.observation.values(),
                step.reward,
                step.ending,
                *(array for final in step.final_observation.values() for array in final.values()),
            )
        )
        for step in steps
    ]


def resumed(make: Callable[[], Any], grade: Grade, before: int = 150, after: int = 150) -> tuple[Lanes, bool]:
    """Play, save, continue; restore elsewhere and continue: those lanes, and whether both futures are equal."""
    original, other = (Lanes(make, 3, SEEDS, grade) for _ in range(2))
    original.reset()
    play(original, before)
    other.restore(original.state())
    return other, fingerprint(play(original, after, seed=1)) == fingerprint(play(other, after, seed=1))
