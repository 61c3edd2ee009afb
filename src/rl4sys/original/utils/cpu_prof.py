"""`rl4sys.utils.cpu_prof`: the processor time of this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rl4sys.original.utils.sampler import Sampler


class CPUProfiler:
    """Writes the processor time of this process, and its share of one core since the sample before, to a CSV file."""

    def __init__(self, proj_name: str, output_dir: str = "cputest", log_interval: float = 3.0) -> None:
        self._sampler = Sampler(f"{proj_name}_cpu_profile", output_dir, log_interval, self._processor)
        self._before = (time.monotonic(), time.process_time())

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

    def _processor(self) -> Mapping[str, float]:
        before, self._before = self._before, (time.monotonic(), time.process_time())
        seconds, used = self._before[0] - before[0], self._before[1] - before[1]
        return {"cpu_seconds": self._before[1], "cpu_percent": 100.0 * used / seconds if seconds > 0 else 0.0}
