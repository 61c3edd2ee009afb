"""The systems that ask for decisions, and what is measured of them."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces

TICK = 1e-3
"""Seconds of the paced loop."""
LATEST = 20
"""Episodes at the end over which returns are averaged."""


class Decider(Protocol):
    """What decides for a system."""

    def act(self, observation: Any) -> Any:
        """The action for an observation."""

    def reward(self, value: float) -> None:
        """Add to the reward of the latest action."""

    def end(self, observation: Any, *, truncated: bool) -> None:
        """End an episode."""


@dataclass(slots=True)
class Measurement:
    """What a system noticed."""

    act: list[int] = field(default_factory=list)
    """Nanoseconds of each decision."""
    returns: list[float] = field(default_factory=list)
    late_ticks: int = 0
    seconds: float = 0.0
    client_cpu: float = 0.0
    """CPU seconds of the system's own thread."""

    def values(self) -> dict[str, float | None]:
        """The columns that are the same for all peers."""
        times = np.array(self.act) / 1e3
        return {
            "decisions_per_second": len(times) / self.seconds,
            "act_p50_us": float(np.quantile(times, 0.5)),
            "act_p99_us": float(np.quantile(times, 0.99)),
            "act_p999_us": float(np.quantile(times, 0.999)),
            "longest_stall_ms": float(times.max()) / 1e3,
            "late_ticks": self.late_ticks / len(times),
            "client_cpu_us": 1e6 * self.client_cpu / len(times),
            "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "return": float(np.mean(self.returns[-LATEST:])) if self.returns else None,
        }


def cpu_seconds(root: int) -> float:
    """CPU seconds of a process and of those that it started."""
    found: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                # It has ended meanwhile.
                continue
            found[int(entry.name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    family = {root}
    while grown := {process for process, (parent, _) in found.items() if parent in family} - family:
        family |= grown
    return sum(seconds for process, (_, seconds) in found.items() if process in family)


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


def lunar_lander(decider: Decider, decisions: int, seed: int) -> Measurement:
    """LunarLander-v3 as a system that asks as fast as it can."""
    environment = gymnasium.make("LunarLander-v3")
    observation, _ = environment.reset(seed=seed)
    total = 0.0

    def step(action: Any) -> Any:
        nonlocal observation, total
        observation, reward, terminated, truncated, _ = environment.step(int(action))
        decider.reward(float(reward))
        total += float(reward)
        if terminated or truncated:
            decider.end(observation, truncated=truncated)
            measured.returns.append(total)
            observation, _ = environment.reset()
            total = 0.0
        return observation

    measured = Measurement()
    _run(decider, decisions, measured, observation, step)
    return measured


def paced(decider: Decider, decisions: int, seed: int) -> Measurement:
    """A system that needs a decision every millisecond: which of four queues, by their lengths, is the shortest."""
    rng = np.random.default_rng(seed)
    measured = Measurement()
    observation = rng.random(8, np.float32)
    total, steps = 0.0, 0
    due = time.perf_counter()

    def step(action: Any) -> Any:
        nonlocal observation, total, steps, due
        reward = float(int(action) == int(observation[:4].argmin()))
        decider.reward(reward)
        total, steps = total + reward, steps + 1
        observation = rng.random(8, np.float32)
        if steps % 200 == 0:
            decider.end(observation, truncated=True)
            measured.returns.append(total)
            total = 0.0
        due += TICK
        if (left := due - time.perf_counter()) > 0:
            time.sleep(left)
        else:
            # What is missed is not made up for.
            measured.late_ticks += 1
            due -= left
        return observation

    _run(decider, decisions, measured, observation, step)
    return measured


def _run(decider: Decider, decisions: int, measured: Measurement, observation: Any, step: Callable[[Any], Any]) -> None:
    began, cpu = time.perf_counter(), time.thread_time()
    for _ in range(decisions):
        asked = time.perf_counter_ns()
        action = decider.act(observation)
        measured.act.append(time.perf_counter_ns() - asked)
        observation = step(action)
    measured.seconds = time.perf_counter() - began
    measured.client_cpu = time.thread_time() - cpu


def batch_scheduling(decider: Decider, decisions: int, seed: int) -> Measurement:
    """A batch system that picks one of up to 128 waiting jobs. Instead of returns: slowdowns relative to SJF."""
    # Imported here: the other works need nothing of this project.
    from rl4sys.environments.scheduling import BatchScheduling, measure, schedule_by

    environment = BatchScheduling(protocol="commit", mix=0.0, most=CANDIDATES, beside_sjf=True)
    observation, _ = environment.reset(seed=seed)

    def step(action: Any) -> Any:
        nonlocal observation
        observation, reward, over, _, info = environment.step(int(action))
        decider.reward(float(reward))
        if over:
            decider.end(observation, truncated=False)
            sjf = measure(schedule_by("sjf", environment.episode.jobs, environment.rules.protocol)).slowdown
            measured.returns.append(float(info["slowdown"]) / sjf)
            observation, _ = environment.reset()
        return observation

    measured = Measurement()
    _run(decider, decisions, measured, observation, step)
    return measured


class PaddedRows:
    """The waiting jobs as one vector of fixed length, for libraries that know no choices among rows.

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


def padded(observation: Any) -> Any:
    """Context and rows in one vector; absent rows are zeros."""
    flat = np.zeros(CONTEXT_SIZE + CANDIDATES * ROW_SIZE, np.float32)
    rows = observation["candidates"].ravel()
    flat[:CONTEXT_SIZE] = observation["context"]
    flat[CONTEXT_SIZE : CONTEXT_SIZE + rows.size] = rows
    return flat


CANDIDATES, ROW_SIZE, CONTEXT_SIZE = 128, 11, 8


@dataclass(frozen=True, slots=True)
class Work:
    """A system, and what a decision is about."""

    title: str
    run: Callable[[Decider, int, int], Measurement]
    observation: spaces.Box
    action: spaces.Discrete
    result: str = "return, the last 20 episodes"
    has_rows: bool = False
    """Whether a choice is one of several rows, whose number differs."""


def _vector(size: int) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, (size,), np.float32)


WORKS = {
    "lunar_lander": Work("LunarLander-v3, PPO 64×64, as fast as it can", lunar_lander, _vector(8), spaces.Discrete(4)),
    "batch_scheduling": Work(
        "batch scheduling, one of up to 128 jobs with 11 numbers each, as fast as it can",
        batch_scheduling,
        _vector(CONTEXT_SIZE + CANDIDATES * ROW_SIZE),
        spaces.Discrete(CANDIDATES),
        "slowdown relative to SJF, the last 20 sequences",
        has_rows=True,
    ),
    "paced": Work("a decision every millisecond", paced, _vector(8), spaces.Discrete(4)),
}
