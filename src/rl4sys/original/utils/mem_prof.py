"""`rl4sys.utils.mem_prof`: the memory of this process over time."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rl4sys.original.utils.sampler import Sampler

_UNIT = 1 if sys.platform == "darwin" else 1024


class MemoryProfiler:
    """Writes the resident memory of this process, now and at most so far, to a CSV file."""

    def __init__(self, proj_name: str, output_dir: str = "memtest", log_interval: float = 3.0) -> None:
        self._sampler = Sampler(f"{proj_name}_memory_profile", output_dir, log_interval, _memory)

    def start_background_profiling(
        self,
        pid: int | None = None,
        include_system: bool = True,
        callback: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """Begin to measure this process; `pid` and `include_system` have no effect."""
        self._sampler.start(callback)

    def stop_background_profiling(self, timeout: float | None = 5.0) -> bool:
        """Stop; false if that takes longer than `timeout` seconds."""
        return self._sampler.stop(timeout)

    def is_profiling(self) -> bool:
        """Whether it measures at present."""
        return self._sampler.is_running


def _memory() -> Mapping[str, float]:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
    status = Path("/proc/self/statm")
    now = int(status.read_text().split()[1]) * resource.getpagesize() if status.exists() else most
    return {"process_rss": now, "process_peak_rss": most}
