"""The system as an environment of a library that owns the loop, in the same process: without any adapter between."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
from inverted_loop import LoopEnded
from measurement import Measurement


class OwnLoop(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Measures how long the library takes from an observation to its action; ends it with `LoopEnded` at a limit.

    What a library does between two steps, such as an update, counts for the decision that it delays.
    """

    def __init__(self, system: gymnasium.Env[Any, Any], measured: Measurement, seed: int) -> None:
        super().__init__(system)
        self._measured, self._seed = measured, seed
        self._total, self._asked = 0.0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. The seeds of the library are not used, so that all meet the same first episode."""
        seen = self.env.reset(seed=None if self._measured.act else self._seed)
        self._total, self._asked = 0.0, time.perf_counter_ns()
        return seen

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step of the system. What a library does before its first one, such as to build itself, is left out."""
        if not self._measured.act:
            self._measured.began, self._asked = time.perf_counter(), time.perf_counter_ns()
        if self._measured.is_over:
            raise LoopEnded("The system has ended.")
        self._measured.act.append(time.perf_counter_ns() - self._asked)
        observation, reward, terminated, truncated, info = self.env.step(int(action))
        self._total += float(reward)
        self._measured.note_step(self._total, info, over=terminated or truncated)
        self._measured.seconds = time.perf_counter() - self._measured.began
        self._asked = time.perf_counter_ns()
        return observation, float(reward), terminated, truncated, {}

    def close(self) -> None:
        """Do nothing: a library may close what it only looked at."""
