"""What became of a sequence of jobs: when each started, and the metrics of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rl4sys.environments.scheduling.heuristics import heuristic
from rl4sys.environments.scheduling.machine import UNSTARTED, Machine
from rl4sys.environments.scheduling.protocols import BACKFILLS, PROTOCOLS, ProtocolName, run_commit, run_wait
from rl4sys.environments.scheduling.workload import Workload
from rl4sys.experience import Array
from rl4sys.suggestions import did_you_mean

THRESHOLD = 10.0
"""Seconds: run times below it count as this long in a bounded slowdown."""


class UnknownProtocol(ValueError):
    """No protocol has this name."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Jobs with the time at which each started."""

    jobs: Workload
    start: Array

    @property
    def wait(self) -> Array:
        """Seconds between submission and start."""
        return self.start - self.jobs.submit

    @property
    def slowdown(self) -> Array:
        """Turnaround relative to the run time, at least 1; short jobs count as `THRESHOLD` seconds long."""
        return bounded_slowdown(self.wait, self.jobs.run)


@dataclass(frozen=True, slots=True)
class ScheduleMetrics:
    """Metrics of a schedule, which are read together: one alone can be had at the cost of another. Times in seconds."""

    slowdown: float
    wait: float
    wait_p99: float
    wait_longest: float
    turnaround: float
    utilisation: float


def bounded_slowdown(wait: Array, run: Array) -> Array:
    """Turnaround relative to the run time, at least 1; short jobs count as `THRESHOLD` seconds long."""
    return np.maximum(1.0, (wait + run) / np.maximum(run, THRESHOLD))


def finished(jobs: Workload, machine: Machine) -> Schedule:
    """The schedule of a machine on which every job was started."""
    start = np.array(machine.starts)
    if (start == UNSTARTED).any():
        raise ValueError(f"{int((start == UNSTARTED).sum())} of {len(start)} jobs were not started.")
    return Schedule(jobs, start)


def measure(schedule: Schedule) -> ScheduleMetrics:
    """All metrics; utilisation is over the time from the first submission to the last end."""
    jobs, wait = schedule.jobs, schedule.wait
    lasted = float((schedule.start + jobs.run).max() - jobs.submit.min())
    return ScheduleMetrics(
        slowdown=float(schedule.slowdown.mean()),
        wait=float(wait.mean()),
        wait_p99=float(np.percentile(wait, 99)),
        wait_longest=float(wait.max()),
        turnaround=float((wait + jobs.run).mean()),
        utilisation=float((jobs.run * jobs.needed).sum()) / (jobs.processors * lasted),
    )


def mean_metrics(measured: Sequence[ScheduleMetrics]) -> ScheduleMetrics:
    """The mean of each metric over sequences."""
    columns = np.array([[getattr(each, name) for name in ScheduleMetrics.__slots__] for each in measured])
    return ScheduleMetrics(*columns.mean(0).tolist())


def schedule_by(name: str, jobs: Workload, protocol: ProtocolName, keep_free: int = 0) -> Schedule:
    """Run a sequence of jobs by a heuristic; by `wait`, `keep_free` processors are left to short jobs."""
    check_protocol(protocol)
    rule, machine = heuristic(name).make(jobs), Machine(jobs)
    if protocol == "wait":
        run_wait(machine, rule, keep_free)
    else:
        run_commit(machine, rule, BACKFILLS[protocol])
    return finished(jobs, machine)


def check_protocol(name: str) -> None:
    """Refuse a name that is no protocol's."""
    if name not in PROTOCOLS:
        raise UnknownProtocol(
            f"Unknown protocol '{name}'{did_you_mean(name, PROTOCOLS) or '.'} Known: {', '.join(PROTOCOLS)}."
        )
