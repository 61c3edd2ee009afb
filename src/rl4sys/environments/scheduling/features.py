"""What a policy sees of a batch system: a row of features for each job that it may choose, and the machine as context.

All features are scaled to about −1 … 1, by logarithms where they span orders of magnitude. A scheduler knows them: run
times are the requested ones.
"""

from __future__ import annotations

import math

import numpy as np

from rl4sys.environments.scheduling.machine import Machine
from rl4sys.environments.scheduling.workload import Workload
from rl4sys.experience import Array

ROW = (
    "requested time, logarithm",
    "processors, share of the machine",
    "processors, logarithm",
    "time waited, logarithm",
    "slowdown so far, logarithm",
    "1 if it fits now",
    "processors left free once it runs, share",
    "time until it fits, logarithm",
    "share of queued jobs that are shorter",
    "processors × logarithm of requested time",
    "1 in the row that stands for waiting",
)
CONTEXT = (
    "free processors, share",
    "queued jobs, logarithm",
    "share of queued jobs that fit now",
    "time until the next job should end, logarithm",
    "processors free in ten minutes, share",
    "processors free in an hour, share",
    "processors free in six hours, share",
    "work in the queue, logarithm",
)
_SOON = np.array([600.0, 3600.0, 21_600.0])
_DAY = 86_400.0
LONG = 12.0
"""Logarithm of about two days of seconds: the scale of times."""


def observe(machine: Machine, jobs: Workload, offered: Array, *, may_wait: bool) -> tuple[Array, Array]:
    """Rows [k, features] for the offered jobs, with one for waiting after them if that is allowed, and the context."""
    queued = np.fromiter(machine.queue, np.int64, len(machine.queue))
    ends, free = _releases(machine)
    requested, needed = jobs.requested[offered], jobs.needed[offered]
    waited = machine.now - jobs.submit[offered]
    lasts = np.maximum(requested, 10.0)
    until = ends[np.searchsorted(free, needed)] - machine.now
    long = np.log(requested) / LONG
    size = needed / machine.processors
    shorter = np.searchsorted(np.sort(jobs.requested[queued]), requested) / len(queued)
    rows = np.zeros((len(offered) + may_wait, len(ROW)), np.float32)
    columns = (
        long,
        size,
        np.log2(needed) / max(1.0, math.log2(machine.processors)),
        np.log1p(waited) / LONG,
        np.log((waited + lasts) / lasts) / 6.0,
        needed <= machine.free,
        machine.free / machine.processors - size,
        np.log1p(until) / LONG,
        shorter,
        size * long,
    )
    for place, column in enumerate(columns):
        rows[: len(offered), place] = column
    if may_wait:
        rows[-1, -1] = 1.0
    return rows, _context(machine, jobs, queued, ends, free)


def _releases(machine: Machine) -> tuple[Array, Array]:
    """Times at which running jobs should have ended, and the processors that are then free; the first time is now."""
    starts, requested, needed = machine.starts, machine.requested, machine.needed
    expected = sorted((max(machine.now, starts[job] + requested[job]), needed[job]) for _, _, job in machine.running)
    ends = np.array([machine.now, *(end for end, _ in expected)])
    free = np.cumsum([machine.free, *(count for _, count in expected)])
    return ends, free


def _context(machine: Machine, jobs: Workload, queued: Array, ends: Array, free: Array) -> Array:
    size = machine.processors
    needed = jobs.needed[queued]
    work = float(jobs.requested[queued] @ needed) / (size * _DAY)
    next_end = float(ends[1] - machine.now) if len(ends) > 1 else 0.0
    soon = free[np.searchsorted(ends, machine.now + _SOON, side="right") - 1] / size
    fits = float(np.mean(needed <= machine.free)) if len(queued) else 0.0
    head = (machine.free / size, math.log1p(len(queued)) / 6.0, fits, math.log1p(next_end) / LONG)
    return np.array([*head, *soon, math.log1p(work)], np.float32)
