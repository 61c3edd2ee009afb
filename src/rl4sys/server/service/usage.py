"""Processor time and memory of processes, from /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """The share of one core (1.0) since the last sample, resident bytes, and processor seconds since the start."""

    cpu: float
    memory_bytes: int
    cpu_seconds: float


class UsageMeter:
    """Usage of processes, with processor shares between samples that are at least a second apart."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._samples: dict[int, tuple[float, float, float]] = {}

    def of(self, process: int) -> Usage:
        """The usage of a process; zeros if it is gone, or without /proc."""
        try:
            stat = Path(f"/proc/{process}/stat").read_text()
            memory = int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError, ValueError):
            with self._lock:
                self._samples.pop(process, None)
            return Usage(0.0, 0, 0.0)
        # The name in parentheses may contain spaces; user and system time are fields 14 and 15.
        numbers = stat.rpartition(")")[2].split()
        seconds = (int(numbers[11]) + int(numbers[12])) / _TICKS
        return Usage(self._share(process, seconds), memory, seconds)

    def _share(self, process: int, seconds: float) -> float:
        now = self._clock()
        with self._lock:
            then, before, share = self._samples.get(process, (now, seconds, 0.0))
            if now - then >= 1.0:
                share = max(0.0, (seconds - before) / (now - then))
            if now - then >= 1.0 or process not in self._samples:
                self._samples[process] = (now, seconds, share)
            return share


class RateMeter:
    """How fast counters grow, between samples that are at least a second apart."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._samples: dict[str, tuple[float, int, float]] = {}

    def of(self, name: str, count: int) -> float:
        """The rate of a counter per second."""
        now = self._clock()
        with self._lock:
            if name not in self._samples:
                self._samples[name] = (now, count, 0.0)
            then, before, rate = self._samples[name]
            if now - then >= 1.0:
                rate = (count - before) / (now - then)
                self._samples[name] = (now, count, rate)
            return rate
