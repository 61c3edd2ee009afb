"""Processor time and memory of processes, as Linux tells them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """A share of one core (1.0) since the last look, resident bytes, and processor time in seconds since its start."""

    cpu: float
    memory_bytes: int
    cpu_seconds: float


class UsageMeter:
    """Compares processor times of each process with those at the last look, if that was at least a second ago."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._looks: dict[int, tuple[float, float, float]] = {}

    def of(self, process: int) -> Usage:
        """What a process uses; zeros when it is gone, or where there is no /proc."""
        try:
            stat = Path(f"/proc/{process}/stat").read_text()
            memory = int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError, ValueError):
            with self._lock:
                self._looks.pop(process, None)
            return Usage(0.0, 0, 0.0)
        # The name in parentheses may contain spaces; user and system time are fields 14 and 15.
        numbers = stat.rpartition(")")[2].split()
        seconds = (int(numbers[11]) + int(numbers[12])) / _TICKS
        return Usage(self._share(process, seconds), memory, seconds)

    def _share(self, process: int, seconds: float) -> float:
        now = self._clock()
        with self._lock:
            then, before, share = self._looks.get(process, (now, seconds, 0.0))
            if now - then >= 1.0:
                share = max(0.0, (seconds - before) / (now - then))
            if now - then >= 1.0 or process not in self._looks:
                self._looks[process] = (now, seconds, share)
            return share


class RateMeter:
    """How fast a counter grows, between looks that are at least a second apart."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._looks: dict[str, tuple[float, int, float]] = {}

    def of(self, name: str, count: int) -> float:
        """Per second."""
        now = self._clock()
        with self._lock:
            if name not in self._looks:
                self._looks[name] = (now, count, 0.0)
            then, before, rate = self._looks[name]
            if now - then >= 1.0:
                rate = (count - before) / (now - then)
                self._looks[name] = (now, count, rate)
            return rate
