"""What a balancer knows of a backend, from its own requests and their answers alone."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from rl4sys.environments.balancing.requests import CLASSES, MEAN_WORK

_MEMORY = 3.0
"""Seconds over which speed and latency are averaged."""
FEATURES = 9


class BackendView:
    """Requests that are on their way to one backend, and how fast it answered lately.

    It takes a backend for one that works on requests one by one, in order. Its speed is the work of answered requests
    per second in which it was busy; a request that takes longer than that speed lets expect is "overdue".
    """

    def __init__(self) -> None:
        self.waiting: deque[tuple[int, float]] = deque()
        """Classes and times of requests without an answer, oldest first."""
        self.work = 0.0
        """Seconds of work in them, at speed 1."""
        self.latency = 0.0
        """Seconds, a moving average that follows increases at once (peak EWMA)."""
        self._done_work, self._busy = MEAN_WORK, MEAN_WORK
        self._last_answer = 0.0

    @property
    def in_flight(self) -> int:
        """Requests without an answer."""
        return len(self.waiting)

    @property
    def speed(self) -> float:
        """The estimated speed; 1 before there is any answer."""
        return self._done_work / self._busy

    def sent(self, kind: int, now: float) -> None:
        """Note a request to this backend."""
        self.waiting.append((kind, now))
        self.work += CLASSES[kind].work

    def answered(self, kind: int, sent_at: float, now: float) -> None:
        """Note an answer, or a failure."""
        self.waiting.remove((kind, sent_at))
        self.work = self.work - CLASSES[kind].work if self.waiting else 0.0
        busy = max(1e-4, now - max(sent_at, self._last_answer))
        keep = math.exp(-(now - self._last_answer) / _MEMORY) if self._last_answer else 0.0
        self._done_work = keep * self._done_work + CLASSES[kind].work
        self._busy = keep * self._busy + busy
        latency = now - sent_at
        self.latency = latency if latency > self.latency else keep * self.latency + (1.0 - keep) * latency
        self._last_answer = now

    def oldest(self, now: float) -> float:
        """Seconds that the oldest request has been waiting; 0 without any."""
        return now - self.waiting[0][1] if self.waiting else 0.0

    def overdue(self, now: float) -> float:
        """How many times as long as expected the present request takes; below 1 while it is in time."""
        if not self.waiting:
            return 0.0
        kind, sent_at = self.waiting[0]
        began = max(sent_at, self._last_answer)
        return (now - began) * self.speed / CLASSES[kind].work

    def expected(self, kind: int) -> float:
        """Seconds until a request of a class would be answered, at the estimated speed."""
        return (self.work + CLASSES[kind].work) / self.speed


def rows(views: list[BackendView], kind: int, now: float) -> NDArray[np.float32]:
    """The features of every backend for a request [backends, FEATURES], all of the order of one."""
    least = min(view.in_flight for view in views)
    shortest = min(view.expected(kind) for view in views)
    found = [
        (
            math.log1p(view.in_flight),
            math.log1p(view.in_flight - least),
            math.log(view.speed) / 2.0,
            math.sqrt(view.expected(kind)) * 3.0,
            math.sqrt(view.expected(kind) - shortest) * 3.0,
            math.sqrt(view.latency) * 3.0,
            math.log1p(view.overdue(now)),
            math.sqrt(view.oldest(now)) * 3.0,
            1.0 if view.in_flight == 0 else 0.0,
        )
        for view in views
    ]
    return np.array(found, np.float32)


def context(kind: int) -> NDArray[np.float32]:
    """The class of a request, one number for each."""
    marks = np.zeros(len(CLASSES), np.float32)
    marks[kind] = 1.0
    return marks
