"""A system that asks for decisions: it owns the loop, as a live system does."""

from __future__ import annotations

import time
from typing import Any, Protocol

import numpy as np
from measurement import Limits, Measurement
from systems import Work


class Decider(Protocol):
    """What decides for a system."""

    def act(self, observation: Any) -> Any:
        """The action for an observation."""

    def reward(self, value: float) -> None:
        """Add to the reward of the latest action."""

    def end(self, observation: Any, *, truncated: bool) -> None:
        """End an episode."""


class RandomDecider:
    """The bare loop: a random action, and nothing else."""

    def __init__(self, actions: int, seed: int) -> None:
        self._actions, self._rng = actions, np.random.default_rng(seed)

    def act(self, observation: Any) -> int:
        """Any action."""
        return int(self._rng.integers(self._actions))

    def reward(self, value: float) -> None:
        """Do nothing."""

    def end(self, observation: Any, *, truncated: bool) -> None:
        """Do nothing."""


def ask(work: Work, decider: Decider, limits: Limits, seed: int) -> Measurement:
    """Let a system ask until a limit is reached."""
    system = work.make()
    observation, _ = system.reset(seed=seed)
    total, measured, cpu = 0.0, Measurement(limits), time.thread_time()
    while not measured.is_over:
        asked = time.perf_counter_ns()
        action = decider.act(observation)
        measured.act.append(time.perf_counter_ns() - asked)
        observation, reward, terminated, truncated, info = system.step(int(action))
        decider.reward(float(reward))
        total += float(reward)
        measured.note_step(total, info, over=terminated or truncated)
        if terminated or truncated:
            decider.end(observation, truncated=truncated)
            observation, _ = system.reset()
            total = 0.0
    measured.seconds = time.perf_counter() - measured.began
    measured.client_cpu = time.thread_time() - cpu
    return measured
