"""What a server did in the last hours and days: one line of JSON every ten seconds, in two files of bounded size."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from rl4sys.server.access.sessions import Sessions
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.learners import Learners
from rl4sys.server.service.alert_metrics import CONNECTED_SECONDS
from rl4sys.server.service.usage import UsageMeter

HISTORY_FILES = ("history.1.jsonl", "history.jsonl")
"""The older half, and the half that grows."""
_SECONDS = 10.0
_MOST_BYTES = 4 << 20
"""Of each file: with one learner about two days together."""
_MOST_LEARNERS = 100
"""In one line: those that changed since the last, by name."""


class ServerHistory:
    """Writes a line when it is time. Losing the last lines in a crash does no harm, so nothing is synced."""

    def __init__(
        self,
        learners: Learners,
        sessions: Sessions,
        calls: Callable[[], Counter[tuple[str, str]]],
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        """`calls`: how often each method ended in each code."""
        self._learners, self._sessions, self._calls = learners, sessions, calls
        self._clock, self._wall_clock = clock, wall_clock
        self._most_bytes = most_bytes
        self._usage = UsageMeter(clock)
        self._next = clock()
        self._last: dict[str, dict[str, Any]] = {}

    def look(self) -> None:
        """Write a line if the last one is ten seconds old."""
        if self._clock() < self._next:
            return
        self._next = self._clock() + _SECONDS
        line = json.dumps(self._line()) + "\n"
        older, newer = (self._learners.data / name for name in HISTORY_FILES)
        if newer.exists() and newer.stat().st_size + len(line) > self._most_bytes:
            newer.replace(older)
        with newer.open("a") as file:
            file.write(line)

    def _line(self) -> dict[str, Any]:
        usage = self._usage.of(os.getpid())
        now = self._clock()
        called = [each.last_call for each in self._sessions.clients() if each.last_call is not None]
        calls = self._calls()
        return {
            "time": self._wall_clock(),
            "cpu": usage.cpu,
            "memory": usage.memory_bytes,
            "disk_free": self._learners.storage.free_bytes,
            "clients": sum(now - last <= CONNECTED_SECONDS for last in called),
            "calls": sum(calls.values()),
            "failed_calls": sum(count for (_, code), count in calls.items() if code != "OK"),
            "learners": self._changed(),
        }

    def _changed(self) -> dict[str, dict[str, Any]]:
        """The learners that are not as in the last line."""
        present = {learner.name: self._learner(learner) for learner in self._learners.all()}
        changed = {name: values for name, values in present.items() if values != self._last.get(name)}
        kept = dict(sorted(changed.items())[:_MOST_LEARNERS])
        self._last = {name: self._last.get(name, {}) for name in present} | kept
        return kept

    def _learner(self, learner: HostedLearner) -> dict[str, Any]:
        segments, size = learner.inbox.queued()
        stored = list(learner.inbox.stored.clients.values())
        progress = learner.progress
        usage = None if learner.process is None else self._usage.of(learner.process)
        return {
            "version": learner.version,
            "queued_segments": segments,
            "queued_bytes": size,
            "stored_segments": sum(counts.segments for counts in stored),
            "stored_bytes": sum(counts.bytes for counts in stored),
            "learned_steps": None if progress is None else progress.steps,
            "return": None if progress is None else progress.mean_return,
            "cpu": None if usage is None else usage.cpu,
            "memory": None if usage is None else usage.memory_bytes,
        }
