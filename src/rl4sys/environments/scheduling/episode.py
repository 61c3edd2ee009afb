"""One sequence of jobs, scheduled decision by decision: what may be chosen, what it costs, and the guard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rl4sys.environments.scheduling.features import observe
from rl4sys.environments.scheduling.machine import UNSTARTED, Machine
from rl4sys.environments.scheduling.protocols import BACKFILLS, ProtocolName, commit
from rl4sys.environments.scheduling.schedule import Schedule, bounded_slowdown, check_protocol, finished, schedule_by
from rl4sys.environments.scheduling.workload import Workload
from rl4sys.experience import Array


@dataclass(frozen=True, slots=True)
class SchedulingRules:
    """How a sequence is scheduled."""

    protocol: ProtocolName = "wait"
    most: int = 128
    """Candidates that are offered at most: of more queued jobs, the oldest; waiting is one of them."""
    max_wait: float | None = None
    """Seconds: a job that has waited longer is started next, and no job that would delay it. None for no guard."""

    def __post_init__(self) -> None:
        check_protocol(self.protocol)
        if self.most < 2:
            raise ValueError(f"most={self.most}: at least 2 candidates are needed to decide anything.")
        if self.max_wait is not None and not self.max_wait > 0.0:
            raise ValueError(f"max_wait={self.max_wait}: expected seconds above 0, or None for no guard.")


class SchedulingEpisode:
    """A sequence of jobs that a policy schedules: `offered` jobs, `choose` one by its place, until it is `over`.

    Time passes by itself where there is nothing to decide. By `wait`, the place after the last job stands for waiting,
    if there is something to wait for.
    """

    def __init__(self, jobs: Workload, rules: SchedulingRules) -> None:
        self.jobs, self.rules, self.machine = jobs, rules, Machine(jobs)
        self.offered: Array = np.empty(0, np.int64)
        """Jobs that may be chosen now, in order of submission."""
        self.may_wait = False
        self.guarded = 0
        """Decisions that the guard took or restricted."""
        self._offer()

    @property
    def over(self) -> bool:
        """Whether every job has started."""
        return len(self.offered) == 0

    def observe(self) -> tuple[Array, Array]:
        """Rows of features of the choices, and the context."""
        return observe(self.machine, self.jobs, self.offered, may_wait=self.may_wait)

    def choose(self, place: int) -> None:
        """Decide: the place of an offered job, or the place after them to wait."""
        if not 0 <= place < len(self.offered) + self.may_wait:
            raise ValueError(
                f"{place} was chosen of {len(self.offered)} jobs, waiting {'is' if self.may_wait else 'not'} allowed."
            )
        if place == len(self.offered):
            self.machine.advance_together()
        elif self.rules.protocol == "wait":
            self.machine.start(int(self.offered[place]))
        else:
            commit(self.machine, int(self.offered[place]), BACKFILLS[self.rules.protocol])
        self._offer()

    def schedule(self) -> Schedule:
        """When each job started, once the episode is over."""
        return finished(self.jobs, self.machine)

    def costs(self) -> tuple[float, float]:
        """Seconds waited by all jobs so far, and the sum of their bounded slowdowns beyond 1."""
        machine, here = self.machine, self.machine.arrived
        start = np.array(machine.starts[:here])
        waited = np.where(start == UNSTARTED, machine.now, start) - self.jobs.submit[:here]
        return float(waited.sum()), float(bounded_slowdown(waited, self.jobs.run[:here]).sum()) - here

    def _offer(self) -> None:
        """Let time pass until there is something to decide."""
        offers = self._fitting if self.rules.protocol == "wait" else self._queued
        while not offers():
            pass

    def _queued(self) -> bool:
        """Offer queued jobs; whether the policy decides, or nothing is left to decide."""
        machine = self.machine
        while not machine.queue and machine.advance():
            pass
        late = self._late()
        if late is not None:
            self.guarded += 1
            commit(machine, late, BACKFILLS[self.rules.protocol])
            return False
        self.offered = np.fromiter(machine.queue, np.int64, len(machine.queue))[: self.rules.most]
        return True

    def _fitting(self) -> bool:
        """Offer jobs that fit, and to wait; whether the policy decides, or nothing is left to decide."""
        machine, late = self.machine, self._late()
        if late is not None and machine.needed[late] <= machine.free:
            self.guarded += 1
            machine.start(late)
            return False
        jobs = harmless_alone(machine, late) if late is not None else self._fit()
        if not jobs:
            self.offered, self.may_wait = np.empty(0, np.int64), False
            return not machine.advance_together()
        self.guarded += late is not None
        self.may_wait = machine.next_time() is not None
        self.offered = np.array(jobs[: self.rules.most - 1], np.int64)
        return True

    def _fit(self) -> list[int]:
        needed, free = self.machine.needed, self.machine.free
        return [job for job in self.machine.queue if needed[job] <= free] if free else []

    def _late(self) -> int | None:
        """The oldest queued job, if it has waited too long."""
        oldest = next(iter(self.machine.queue), None)
        if oldest is None or self.rules.max_wait is None:
            return None
        return oldest if self.machine.now - self.machine.submit[oldest] > self.rules.max_wait else None


def harmless_alone(machine: Machine, reserved: int) -> list[int]:
    """Jobs that fit and would not delay the reserved one, each by itself."""
    time, left_over = machine.expected_start(reserved)
    return [
        job
        for job in machine.queue
        if job != reserved
        and machine.needed[job] <= machine.free
        and (machine.now + machine.requested[job] <= time or machine.needed[job] <= left_over)
    ]


def reference_costs(sequences: Sequence[Workload], protocol: ProtocolName) -> tuple[float, float]:
    """The same costs by SJF, on average; at least a second of waiting, and a slowdown of 1.01, per job."""
    done = [schedule_by("sjf", jobs, protocol) for jobs in sequences]
    waited = max(1.0, float(np.mean([each.wait.mean() for each in done])))
    slowed = max(0.01, float(np.mean([each.slowdown.mean() for each in done])) - 1.0)
    return len(sequences[0]) * waited, len(sequences[0]) * slowed
