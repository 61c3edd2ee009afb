"""Choices among rows as one vector, for libraries that know no such choices."""

from __future__ import annotations

from typing import Any

import gymnasium
from asking_system import Decider
from systems import CANDIDATES, padded, vector


class PaddedRows:
    """Asks a library with the waiting jobs as one vector of fixed length.

    A choice that is not there becomes another one, and is counted.
    """

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self.absent = 0

    def act(self, observation: Any) -> int:
        """The index of a job that waits."""
        rows = len(observation["candidates"])
        action = int(self._decider.act(padded(observation)))
        self.absent += action >= rows
        return action % rows

    def reward(self, value: float) -> None:
        """Pass on the reward of the latest action."""
        self._decider.reward(value)

    def end(self, observation: Any, *, truncated: bool) -> None:
        """End an episode."""
        self._decider.end(padded(observation), truncated=truncated)


class PaddedSystem(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The same as an environment, for a library that owns the loop."""

    def __init__(self, system: gymnasium.Env[Any, Any]) -> None:
        super().__init__(system)
        self.observation_space, self.action_space = vector(), gymnasium.spaces.Discrete(CANDIDATES)
        self.absent, self._rows = 0, 1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._seen(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Choose a job that waits."""
        self.absent += int(action) >= self._rows
        observation, *rest = self.env.step(int(action) % self._rows)
        return (self._seen(observation), *rest)  # type: ignore[return-value]

    def _seen(self, observation: Any) -> Any:
        self._rows = len(observation["candidates"])
        return padded(observation)
