"""A second simulator, slow and plain, that the tests compare schedules with: lists and scans, no heaps."""

from __future__ import annotations

from collections.abc import Callable

from rl4sys.environments.scheduling import Workload

Score = Callable[[float, float, float, int], float]
"""Of now, submit time, requested time and processors."""


class PlainMachine:
    """Jobs of a workload, by number; `start` holds those that started."""

    def __init__(self, jobs: Workload, score: Score) -> None:
        self.jobs, self.score = jobs, score
        self.now, self.here = float(jobs.submit[0]), 1
        self.start: dict[int, float] = {}
        self.released: set[int] = set()

    def end(self, job: int) -> float:
        return self.start[job] + float(self.jobs.run[job])

    def free(self) -> int:
        return self.jobs.processors - sum(int(self.jobs.needed[job]) for job in self.start.keys() - self.released)

    def queue(self) -> list[int]:
        return [job for job in range(self.here) if job not in self.start]

    def pick(self, jobs: list[int]) -> int:
        columns = self.jobs.submit, self.jobs.requested, self.jobs.needed
        return min(jobs, key=lambda job: (self.score(self.now, *(column[job] for column in columns)), job))

    def advance(self) -> bool:
        """One event; in `start`, jobs are in the order in which they started."""
        running = [job for job in self.start if job not in self.released]
        first = min(running, key=self.end, default=None)
        if self.here < len(self.jobs) and (first is None or self.jobs.submit[self.here] <= self.end(first)):
            self.now = max(self.now, float(self.jobs.submit[self.here]))
            self.here += 1
        elif first is not None:
            self.now = self.end(first)
            self.released.add(first)
        else:
            return False
        return True

    def fits(self, job: int) -> bool:
        return int(self.jobs.needed[job]) <= self.free()

    def commit(self, backfills: bool) -> list[float]:
        while len(self.start) < len(self.jobs):
            if not self.queue():
                self.advance()
                continue
            picked = self.pick(self.queue())
            before = self.expected(picked) if backfills else -1.0
            while not self.fits(picked):
                for job in self.queue():
                    if self.fits(job) and self.now + self.jobs.requested[job] < before:
                        self.start[job] = self.now
                self.advance()
            self.start[picked] = self.now
        return [self.start[job] for job in range(len(self.jobs))]

    def expected(self, picked: int) -> float:
        ends = sorted((self.start[job] + self.jobs.requested[job], job) for job in self.start.keys() - self.released)
        free, time = self.free(), self.now
        for end, job in ends:
            if free >= self.jobs.needed[picked]:
                break
            free, time = free + int(self.jobs.needed[job]), float(end)
        return time

    def wait(self) -> list[float]:
        while len(self.start) < len(self.jobs):
            if fitting := [job for job in self.queue() if self.fits(job)]:
                self.start[self.pick(fitting)] = self.now
                continue
            self.advance()
            while self.more_at(self.now):
                self.advance()
        return [self.start[job] for job in range(len(self.jobs))]

    def more_at(self, time: float) -> bool:
        running = [self.end(job) for job in self.start if job not in self.released]
        arrivals = [float(self.jobs.submit[self.here])] if self.here < len(self.jobs) else []
        return time in running or time in arrivals
