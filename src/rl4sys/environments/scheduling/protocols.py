"""What a scheduler may decide, and when: three protocols, and a whole sequence of jobs run by a rule.

`commit`, the one of the literature: one of all queued jobs is picked, and blocks the others until it fits.
`backfill` and `easy`: as `commit`, and while the picked job waits, jobs that should not delay it are started.
`wait`: at each event a job that fits is started, or none is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from rl4sys.environments.scheduling.heuristics import Rule
from rl4sys.environments.scheduling.machine import Machine

ProtocolName = Literal["commit", "backfill", "easy", "wait"]
PROTOCOLS: tuple[ProtocolName, ...] = get_args(ProtocolName)

Backfill = Callable[[Machine, int], None]
"""Moves the clock until the picked job fits, and starts other jobs in the meantime."""


def block(machine: Machine, picked: int) -> None:
    """Nothing else starts while the picked job waits."""
    needed = machine.needed[picked]
    while machine.free < needed:
        machine.advance()


def published_backfill(machine: Machine, picked: int) -> None:
    """Start jobs in order of submission that end, by requested times, before the picked job can start.

    That time is computed once, when the job is picked.
    """
    needed = machine.needed[picked]
    if machine.free < needed:
        before, _ = machine.expected_start(picked)
        while machine.free < needed:
            for job in list(machine.queue) if machine.free else ():
                fits = machine.needed[job] <= machine.free
                if fits and machine.now + machine.requested[job] < before:
                    machine.start(job)
            machine.advance()


def easy_backfill(machine: Machine, picked: int) -> None:
    """Start jobs in order of submission that do not delay the picked one (EASY: Lifka, JSSPP 1995).

    The time at which the picked job can start is computed again at every event. A job that would run beyond it may
    use the processors that are left over then.
    """
    while machine.free < machine.needed[picked]:
        for job in harmless(machine, picked) if machine.free else ():
            machine.start(job)
        machine.advance()


def harmless(machine: Machine, reserved: int) -> list[int]:
    """Jobs in order of submission that fit now, all together, and do not delay the reserved one, by requested times."""
    time, left_over = machine.expected_start(reserved)
    free, jobs = machine.free, []
    for job in machine.queue:
        needed = machine.needed[job]
        is_long = machine.now + machine.requested[job] > time
        if needed <= free and job != reserved and (not is_long or needed <= left_over):
            jobs.append(job)
            free -= needed
            left_over -= needed if is_long else 0
    return jobs


BACKFILLS: dict[ProtocolName, Backfill] = {
    "commit": block,
    "backfill": published_backfill,
    "easy": easy_backfill,
}


def run_commit(machine: Machine, rule: Rule, backfill: Backfill) -> None:
    """Run all jobs by `commit`: each picked job starts before the next is picked."""
    while True:
        while not machine.queue:
            if not machine.advance():
                return
        commit(machine, rule.first(machine), backfill)


def commit(machine: Machine, job: int, backfill: Backfill) -> None:
    """Start a queued job as soon as it fits."""
    if machine.free < machine.needed[job]:
        backfill(machine, job)
    machine.start(job)


SHORT = 600.0
"""Seconds: jobs that request no more may use the processors that `run_wait` keeps free."""


def run_wait(machine: Machine, rule: Rule, keep_free: int = 0) -> None:
    """Run all jobs by `wait`: at each event, start the best jobs of those that fit.

    `keep_free` processors are left to short jobs, except by a job that starts on the empty machine.
    """
    needed, requested, queue = machine.needed, machine.requested, machine.queue
    while True:
        free = machine.free
        room = free if free == machine.processors else free - keep_free
        fitting = [j for j in queue if needed[j] <= (room if requested[j] > SHORT else free)] if free else ()
        if fitting:
            machine.start(rule.best(machine, fitting))
        elif not machine.advance_together():
            return
