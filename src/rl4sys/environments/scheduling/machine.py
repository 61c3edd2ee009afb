"""A machine of equal processors, simulated event by event: its clock, its queue, and the jobs that run on it."""

from __future__ import annotations

from heapq import heappop, heappush

from rl4sys.environments.scheduling.workload import Workload

UNSTARTED = -1.0
"""The start time of a job that has not started."""


class Machine:
    """Jobs arrive, wait in the queue, run and release their processors; a scheduler starts them.

    Jobs are numbered in order of submission. The machine is empty at the first submit time. A submission at the same
    time as a release comes first.
    """

    __slots__ = (
        "_started",
        "arrived",
        "free",
        "needed",
        "now",
        "processors",
        "queue",
        "requested",
        "run",
        "running",
        "starts",
        "submit",
    )

    def __init__(self, jobs: Workload) -> None:
        # Lists, since reading single elements of arrays is several times slower.
        self.submit: list[float] = jobs.submit.tolist()
        self.run: list[float] = jobs.run.tolist()
        self.requested: list[float] = jobs.requested.tolist()
        self.needed: list[int] = jobs.needed.tolist()
        self.processors = self.free = jobs.processors
        self.now = self.submit[0]
        self.starts = [UNSTARTED] * len(jobs)
        self.arrived = 0
        """Jobs submitted so far; the next one to arrive has this number."""
        self.queue: dict[int, None] = {}
        """Queued jobs in order of submission."""
        self.running: list[tuple[float, int, int]] = []
        """(end, number of earlier starts, job), a heap: of jobs that end together, the first started is first."""
        self._started = 0
        self.advance()

    def start(self, job: int) -> None:
        """Run a queued job that fits."""
        self.starts[job] = self.now
        self.free -= self.needed[job]
        del self.queue[job]
        heappush(self.running, (self.now + self.run[job], self._started, job))
        self._started += 1

    def advance(self) -> bool:
        """Move to the next event, a submission or a release; False if there is none."""
        arrived, running = self.arrived, self.running
        if arrived < len(self.submit) and (not running or self.submit[arrived] <= running[0][0]):
            self.queue[arrived] = None
            self.arrived = arrived + 1
            if self.submit[arrived] > self.now:
                self.now = self.submit[arrived]
            return True
        if not running:
            return False
        self.now, _, job = heappop(running)
        self.free += self.needed[job]
        return True

    def next_time(self) -> float | None:
        """When the next event happens."""
        times = [self.submit[self.arrived]] if self.arrived < len(self.submit) else []
        if self.running:
            times.append(self.running[0][0])
        return min(times, default=None)

    def advance_together(self) -> bool:
        """Move through all events of the next time at which something happens; False if there is none."""
        if not self.advance():
            return False
        while self.next_time() == self.now:
            self.advance()
        return True

    def expected_start(self, job: int) -> tuple[float, int]:
        """When a queued job will fit, by requested times, and how many processors will then be left over."""
        free, time, needed = self.free, self.now, self.needed[job]
        if free < needed:
            # A job that runs longer than it asked for may end at any moment.
            ends = sorted(
                (max(self.now, self.starts[each] + self.requested[each]), each) for _, _, each in self.running
            )
            for end, each in ends:
                if free >= needed and end > time:
                    break
                time = end
                free += self.needed[each]
        return time, free - needed
