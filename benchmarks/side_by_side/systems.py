"""The systems that ask for decisions, as environments."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

TICK = 1e-3
"""Seconds of the paced loop."""
CANDIDATES, ROW_SIZE, CONTEXT_SIZE = 128, 8, 8
_FEATURES = [0, 1, 3, 4, 5, 6, 7, 8]
"""Of a job: without those that follow from others, and the mark of the row for waiting, which this protocol has not."""


def vector(size: int = CONTEXT_SIZE + CANDIDATES * ROW_SIZE) -> spaces.Box:
    """Observations of so many numbers."""
    return spaces.Box(-np.inf, np.inf, (size,), np.float32)


class Paced(gymnasium.Env[Any, Any]):
    """Needs a decision every millisecond: which of four queues, by their lengths, is the shortest."""

    observation_space, action_space = vector(8), spaces.Discrete(4)

    def __init__(self) -> None:
        self._rng, self._steps, self._due = np.random.default_rng(0), 0, 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode of 200 decisions."""
        if seed is not None:
            self._rng, self._due = np.random.default_rng(seed), time.perf_counter()
        self._seen = self._rng.random(8, np.float32)
        return self._seen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Reward the right queue, and wait for the next tick. What is missed is not made up for."""
        reward = float(int(action) == int(self._seen[:4].argmin()))
        self._seen, self._steps = self._rng.random(8, np.float32), self._steps + 1
        self._due += TICK
        left = self._due - time.perf_counter()
        if left > 0:
            time.sleep(left)
        else:
            self._due -= left
        return self._seen, reward, False, self._steps % 200 == 0, {"late": left <= 0}


class Scheduling(gymnasium.Env[Any, Any]):
    """A batch system that picks one of up to 128 waiting jobs. Instead of returns: slowdowns relative to SJF."""

    def __init__(self) -> None:
        # Imported here: the other works need nothing of this project.
        from rl4sys.environments.scheduling import BatchScheduling

        self._system = BatchScheduling(protocol="commit", mix=0.0, most=CANDIDATES, beside_sjf=True)
        rows = spaces.Sequence(vector(ROW_SIZE), stack=True)
        self.observation_space = spaces.Dict({"candidates": rows, "context": vector(CONTEXT_SIZE)})
        self.action_space = self._system.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin with an empty machine and a sequence of jobs."""
        return self._reduced(self._system.reset(seed=seed)[0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Pick a job."""
        from rl4sys.environments.scheduling import measure, schedule_by

        observation, reward, over, _, info = self._system.step(int(action))
        if over:
            sjf = measure(schedule_by("sjf", self._system.episode.jobs, self._system.rules.protocol)).slowdown
            info = {"result": float(info["slowdown"]) / sjf}
        return self._reduced(observation), float(reward), over, False, info

    @staticmethod
    def _reduced(observation: Any) -> Any:
        return {"candidates": observation["candidates"][:, _FEATURES], "context": observation["context"]}


def padded(observation: Any) -> Any:
    """Context and rows in one vector; absent rows are zeros."""
    flat = np.zeros(CONTEXT_SIZE + CANDIDATES * ROW_SIZE, np.float32)
    rows = observation["candidates"].ravel()
    flat[:CONTEXT_SIZE] = observation["context"]
    flat[CONTEXT_SIZE : CONTEXT_SIZE + rows.size] = rows
    return flat


@dataclass(frozen=True, slots=True)
class Work:
    """A system, and what a decision is about."""

    title: str
    make: Callable[[], gymnasium.Env[Any, Any]]
    observation: spaces.Box
    """As one vector."""
    action: spaces.Discrete
    result: str = "return, the last 20 episodes"
    has_rows: bool = False
    """Whether a choice is one of several rows, whose number differs."""
    is_cost: bool = False
    """Whether a lower result is better."""


WORKS = {
    "lunar_lander": Work(
        "LunarLander-v3, PPO 64×64, as fast as it can",
        lambda: gymnasium.make("LunarLander-v3"),
        vector(8),
        spaces.Discrete(4),
    ),
    "batch_scheduling": Work(
        "batch scheduling, one of up to 128 jobs with 8 numbers each, as fast as it can",
        Scheduling,
        vector(),
        spaces.Discrete(CANDIDATES),
        "slowdown relative to SJF, the last 20 sequences",
        has_rows=True,
        is_cost=True,
    ),
    "paced": Work("a decision every millisecond", Paced, vector(8), spaces.Discrete(4)),
}
