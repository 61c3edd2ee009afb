from __future__ import annotations

import math

import numpy as np
import pytest

from rl4sys.environments.scheduling import (
    HEURISTICS,
    PROTOCOLS,
    Machine,
    ProtocolName,
    UnknownHeuristic,
    UnknownProtocol,
    Workload,
    measure,
    schedule_by,
    workload,
)
from rl4sys.environments.scheduling.protocols import commit, easy_backfill

from .reference import PlainMachine, Score
from .workloads import generated, six_jobs, with_wrong_requests


@pytest.mark.parametrize(
    ("protocol", "name", "starts"),
    [
        ("commit", "fcfs", [0, 10, 30, 30, 30, 32]),
        ("commit", "sjf", [0, 10, 30, 30, 10, 30]),
        ("backfill", "fcfs", [0, 10, 2, 10, 4, 30]),
        ("easy", "fcfs", [0, 10, 2, 3, 6, 30]),
        ("wait", "sjf", [0, 20, 2, 3, 6, 8]),
    ],
)
def test_six_jobs_start_when_computed_by_hand(protocol: ProtocolName, name: str, starts: list[float]) -> None:
    assert schedule_by(name, six_jobs(), protocol).start.tolist() == starts


def test_the_metrics_of_six_jobs_are_those_computed_by_hand() -> None:
    found = measure(schedule_by("sjf", six_jobs(), "wait"))
    assert (found.slowdown, found.wait, found.wait_longest) == pytest.approx((1.2, 4.0, 19.0))
    assert (found.turnaround, found.utilisation) == pytest.approx((17.0, 0.82))
    assert 3.0 < found.wait_p99 <= 19.0


SCORES: dict[str, Score] = {
    "fcfs": lambda now, s, r, n: s,
    "sjf": lambda now, s, r, n: r,
    "saf": lambda now, s, r, n: r * n,
    "smallest": lambda now, s, r, n: n,
    "f1": lambda now, s, r, n: math.log10(r) * n + 870 * math.log10(max(s, 0.1)),
    "f2": lambda now, s, r, n: math.sqrt(r) * n + 25600 * math.log10(max(s, 0.1)),
    "f3": lambda now, s, r, n: r * n + 6860000 * math.log10(max(s, 0.1)),
    "f4": lambda now, s, r, n: r * math.sqrt(n) + 530000 * math.log10(max(s, 0.1)),
    "wfp3": lambda now, s, r, n: -(((now - s) / r) ** 3) * n,
    "unicep": lambda now, s, r, n: -(now - s) / (math.log2(max(n, 2)) * r),
}


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_generated_workload_is_scheduled_as_by_a_plain_simulator(name: str) -> None:
    jobs = with_wrong_requests(generated(160), np.random.default_rng(1))
    for protocol in ("commit", "backfill", "wait"):
        plain = PlainMachine(jobs, SCORES[name])
        expected = plain.wait() if protocol == "wait" else plain.commit(backfills=protocol == "backfill")
        assert schedule_by(name, jobs, protocol).start.tolist() == expected


def used(jobs: Workload, start: np.ndarray) -> int:
    """The largest number of processors in use at once."""
    changes = [*zip(start + jobs.run, -jobs.needed, strict=True), *zip(start, jobs.needed, strict=True)]
    # Of changes at the same time releases are first: their numbers are negative.
    return int(np.cumsum([count for _, count in sorted(changes)]).max())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_schedule_uses_more_processors_than_there_are(protocol: ProtocolName) -> None:
    jobs = with_wrong_requests(generated(300, seed=3), np.random.default_rng(2))
    for name in HEURISTICS:
        schedule = schedule_by(name, jobs, protocol)
        assert used(jobs, schedule.start) <= jobs.processors
        assert (schedule.wait >= 0.0).all()


def test_easy_backfill_never_delays_the_picked_job() -> None:
    machine = Machine(generated(300, seed=4))
    late = []
    while machine.queue or machine.advance():
        if machine.queue:
            picked = next(iter(machine.queue))
            expected, _ = machine.expected_start(picked)
            commit(machine, picked, easy_backfill)
            late.append(machine.now - expected)
    assert len(late) > 50
    assert max(late) <= 0.0


def test_processors_kept_free_are_left_to_short_jobs() -> None:
    times = np.zeros(4)
    jobs = workload(times, np.array([1000, 1000, 1000, 10]), np.array([1000, 1000, 1000, 10]), np.full(4, 2), 6)
    assert schedule_by("fcfs", jobs, "wait").start.tolist() == [0, 0, 0, 1000]
    assert schedule_by("fcfs", jobs, "wait", keep_free=2).start.tolist() == [0, 0, 1000, 0]


def test_unknown_names_are_refused_with_those_that_exist() -> None:
    with pytest.raises(UnknownHeuristic, match=r"'sjff'; did you mean 'sjf'\? Known: fcfs"):
        schedule_by("sjff", six_jobs(), "commit")
    with pytest.raises(UnknownProtocol, match=r"'waits'; did you mean 'wait'\? Known: commit"):
        schedule_by("sjf", six_jobs(), "waits")  # type: ignore[arg-type]
