"""Metrics of the machine for alerts: memory, disk, and current steps per second."""

from __future__ import annotations

import resource
import shutil
from pathlib import Path

import torch

from rl4sys.experiments.metrics import MetricRecord
from rl4sys.replay import available_memory

PREFIX = "machine/"
METRICS = frozenset(f"{PREFIX}{name}" for name in ("disk", "disk_free", "memory", "gpu_memory", "steps_per_second"))
"""All that there are; what cannot be known on a machine is left out there."""


class MachineMetrics:
    """Measured when records are written, and only if an alert asks for it. Nothing of it is learned from."""

    def __init__(self, directory: Path, process: Path = Path("/proc/self/statm")) -> None:
        self._directory, self._process = directory, process
        self._last: tuple[int, float] | None = None

    def of(self, record: MetricRecord) -> dict[str, float]:
        """Shares from 0 to 1, bytes, and steps per second since the record before; what is not known is left out."""
        usage = shutil.disk_usage(self._directory)
        found = {f"{PREFIX}disk": 1.0 - usage.free / usage.total, f"{PREFIX}disk_free": float(usage.free)}
        for name, measure in (("memory", self._memory), ("gpu_memory", _gpu_memory)):
            value = measure()
            if value is not None:
                found[f"{PREFIX}{name}"] = value
        return found | self._speed(record)

    def _memory(self) -> float | None:
        """What this process takes, as a share of that and of what it could still take."""
        available = available_memory()
        if available is None or not self._process.is_file():
            return None
        taken = int(self._process.read_text().split()[1]) * resource.getpagesize()
        return taken / max(1, taken + available)

    def _speed(self, record: MetricRecord) -> dict[str, float]:
        before, seconds = self._last, record.timing["seconds"]
        if before is not None and record.step == before[0]:
            return {}
        self._last = (record.step, seconds)
        if before is None or record.step < before[0] or seconds <= before[1]:
            return {}
        return {f"{PREFIX}steps_per_second": (record.step - before[0]) / (seconds - before[1])}


def _gpu_memory() -> float | None:
    if not torch.cuda.is_available():
        return None
    free, total = torch.cuda.mem_get_info()
    return 1.0 - free / total
