"""Measures what the client costs the system it is in: alternates its levels in random blocks, in the same process.

`rl4sys profile -- COMMAND` starts a program with the environment variable RL4SYS_PROFILE, a directory with the file
`order.json`; the client then writes what it measures to a file in that directory, one JSON object per line. An operator
can also order it through the server (`ordered_profile.py`).
"""

from __future__ import annotations

import json
import math
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl4sys.client.acting_plan import OFF_REASONS
from rl4sys.client.bare_products import bare_products
from rl4sys.client.client_level import ClientLevel
from rl4sys.client.episode import Episode
from rl4sys.client.process_usage import ProcessUsage
from rl4sys.client.timed_episode import TimedEpisode

if TYPE_CHECKING:
    from rl4sys.client.agent import Agent

ORDER = "order.json"
TIME_BUCKETS = 32
"""Buckets of decision times per doubling, so that a quantile is right to 2 %."""
_SHORTEST, _LONGEST = 0.5, 2.0
"""Seconds of a block."""
_SETTLING = 0.15
"""Seconds after a change of level that are not measured: what was recorded before is still sent."""
_LONGEST_WAIT = 30.0
"""Seconds to wait for the first policy and the first decision."""
_STOPPED = "it was ended early"
_started: dict[int, Profiler] = {}
"""The profiler of this process, by its pid: a forked child has none."""


@dataclass(frozen=True, slots=True)
class ProfileOrder:
    """What to measure."""

    seconds: float
    """Of measuring, without waiting for the first decision."""
    seed: int
    """Of the order and the lengths of blocks."""

    def rounds(self) -> list[list[tuple[ClientLevel, float]]]:
        """Levels and seconds of all blocks: in each round every level once, in random order."""
        rng = random.Random(self.seed)
        mean = (_SHORTEST + _LONGEST) / 2
        count = max(2, round(self.seconds / (mean * len(ClientLevel))))
        return [
            [(level, rng.uniform(_SHORTEST, _LONGEST)) for level in rng.sample(list(ClientLevel), len(ClientLevel))]
            for _ in range(count)
        ]


def start_profile(agent: Agent, directory: Path) -> None:
    """Measure an agent as the file in a directory orders. All agents of a process change their levels together."""
    pid = os.getpid()
    if pid not in _started:
        order = ProfileOrder(**json.loads((directory / ORDER).read_text()))
        profiler = _started[pid] = Profiler(order, _writer(directory / f"{pid}.jsonl"))
        threading.Thread(target=profiler.run, name="rl4sys-profiler", daemon=True).start()
    _started[pid].add(agent)


class Profiler:
    """Measures the agents of one process, and passes on records of four kinds: start, block, floor and end."""

    def __init__(
        self,
        order: ProfileOrder,
        write: Callable[[dict[str, Any]], None],
        wait: Callable[[float], object] | None = None,
        longest_wait: float = _LONGEST_WAIT,
    ) -> None:
        """`write` takes each record as soon as it is complete."""
        self._order = order
        self._write = write
        self._stopping = threading.Event()
        self._wait = wait or self._stopping.wait
        self._longest_wait = longest_wait
        self._agents: list[Agent] = []

    def add(self, agent: Agent) -> None:
        """Measure an agent, too."""
        _time_decisions(agent, TimedEpisode)
        self._agents.append(agent)

    def stop(self) -> None:
        """End soon."""
        self._stopping.set()

    def run(self) -> None:
        """Measure every block, and end with a record that says so or what prevents it."""
        try:
            problem = self._problem() or self._measure()
        except Exception as error:  # the program goes its own way, and the record says what went wrong
            problem = f"measuring failed with {type(error).__name__}: {error}"
        finally:
            self._set(ClientLevel.FULL)
            for agent in self._agents:
                _time_decisions(agent, Episode)
                agent.shared.times.each = []
        self._write({"kind": "end", "problem": problem})

    def _problem(self) -> str | None:
        """Why nothing can be measured, once the system decides; None if it can."""
        deadline = time.monotonic() + self._longest_wait
        while not any(agent.has_policy for agent in self._agents) or not self._decisions():
            if time.monotonic() >= deadline:
                if not any(agent.has_policy for agent in self._agents):
                    return f"no policy arrived within {self._longest_wait:.0f} s: start the training server first"
                return (
                    f"it took no decision within {self._longest_wait:.0f} s: let it call act, also when it is measured"
                )
            if self._stopping.is_set():
                return _STOPPED
            self._wait(0.05)
        if any(agent.shared.fallback is None for agent in self._agents):
            return "it has no fallback, which decides at the level 'off': pass `fallback=` to rl4sys.connect"
        return self._interruption()

    def _interruption(self) -> str | None:
        """Why the policy does not decide at levels at which it should; None if it does."""
        if self._stopping.is_set():
            return _STOPPED
        for agent in self._agents:
            off = agent.shared.governor.plan.off
            if off not in ("", "level"):
                return f"its policy does not decide, because {OFF_REASONS[off]}"
        return None

    def _measure(self) -> str | None:
        """Measure all blocks; why it ended early, if it did."""
        policy = next(agent for agent in self._agents if agent.has_policy)
        self._write({"kind": "start", "pid": os.getpid(), "clients": [a.settings.client_id for a in self._agents]})
        for number, blocks in enumerate(self._order.rounds()):
            for level, seconds in blocks:
                block = self._block(level, seconds)
                if (problem := self._interruption()) is not None:
                    return problem
                self._write({"kind": "block", "round": number, "level": level} | block)
        self._set(ClientLevel.FULL)
        self._write({"kind": "floor", "nanoseconds": bare_products(policy.shared.governor.plan.snapshot)})
        return None

    def _block(self, level: ClientLevel, seconds: float) -> dict[str, Any]:
        """Measure one level for some seconds."""
        self._set(level)
        self._wait(_SETTLING)
        self._take_times()
        usage, counts = ProcessUsage.now(), self._counts()
        self._wait(seconds)
        after, counted = ProcessUsage.now(), self._counts()
        times = self._take_times()
        health = [agent.health() for agent in self._agents]
        return {
            "seconds": after.seconds - usage.seconds,
            "cpu": after.cpu - usage.cpu,
            "background_cpu": after.background_cpu - usage.background_cpu,
            "memory": after.memory,
            "waits": after.waits - usage.waits,
            "preemptions": after.preemptions - usage.preemptions,
            **{name: counted[name] - counts[name] for name in counts},
            "backlog": sum(one.backlog for one in health),
            "backlog_bytes": sum(one.backlog_bytes for one in health),
            "age": max((one.age for one in health if one.age is not None), default=None),
            "longest": max(times, default=0),
            "times": dict(Counter(map(time_bucket, times))),
        }

    def _counts(self) -> dict[str, int]:
        traffic = [agent.traffic for agent in self._agents]
        return {
            "decisions": self._decisions(),
            "sent_messages": sum(one.sent_messages for one in traffic),
            "sent_bytes": sum(one.sent_bytes for one in traffic),
            "received_messages": sum(one.received_messages for one in traffic),
            "received_bytes": sum(one.received_bytes for one in traffic),
        }

    def _decisions(self) -> int:
        health = [agent.health() for agent in self._agents]
        return sum(one.decisions + one.fallback_decisions for one in health)

    def _take_times(self) -> list[int]:
        taken: list[int] = []
        for agent in self._agents:
            times = agent.shared.times
            each, times.each = times.each, []
            taken += each
        return taken

    def _set(self, level: ClientLevel) -> None:
        for agent in self._agents:
            agent.level = level


def _writer(file: Path) -> Callable[[dict[str, Any]], None]:
    """Appends each record to a file, as a line of JSON."""

    def write(record: dict[str, Any]) -> None:
        with file.open("a") as lines:
            lines.write(json.dumps(record) + "\n")

    return write


def _time_decisions(agent: Agent, kind: type[Episode]) -> None:
    """Time every decision of an agent, or none again."""
    agent.shared.times.is_profiled = kind is TimedEpisode
    agent.episode_type = kind
    for episode in agent.open_episodes:
        episode.__class__ = kind


def time_bucket(nanoseconds: int) -> int:
    """The bucket of a decision time."""
    return math.floor(TIME_BUCKETS * math.log2(max(1, nanoseconds)))


def bucket_time(bucket: int) -> float:
    """The middle of a bucket, in nanoseconds."""
    return float(2 ** ((bucket + 0.5) / TIME_BUCKETS))
