"""What SJF's schedule of the same jobs has cost up to a time: rewards beside it show what decisions are worth."""

from __future__ import annotations

import numpy as np

from rl4sys.environments.scheduling.protocols import ProtocolName
from rl4sys.environments.scheduling.schedule import bounded_slowdown, schedule_by
from rl4sys.environments.scheduling.workload import Workload


class ReferenceSchedule:
    """SJF's schedule of a sequence of jobs. Its costs depend on the jobs alone, so they are a baseline without bias."""

    def __init__(self, jobs: Workload, protocol: ProtocolName) -> None:
        self._jobs = jobs
        self._wait = schedule_by("sjf", jobs, protocol).wait

    def costs(self, now: float) -> tuple[float, float]:
        """Seconds waited by all jobs up to a time, and the sum of their bounded slowdowns beyond 1."""
        waited = np.clip(now - self._jobs.submit, 0.0, self._wait)
        slowed = bounded_slowdown(waited, self._jobs.run)
        return float(waited.sum()), float(slowed.sum()) - len(waited)
