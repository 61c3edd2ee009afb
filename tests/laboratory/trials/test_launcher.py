"""Launches run in real processes, which are pinned, report, stop, and never outlive their parent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.commands import wait_until
from rl4sys.cores import usable_cores
from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, TrialEvent, TrialLaunch, run_launches
from rl4sys.laboratory.trials.local_launcher import LocalLauncher, shares

TESTS = Path(__file__).parents[2]


class EventLog:
    """Keeps all events."""

    def __init__(self) -> None:
        self.started_keys: list[str] = []
        self.events: list[TrialEvent] = []

    def started(self, launch: TrialLaunch) -> None:
        self.started_keys.append(launch.key)

    def handle(self, event: TrialEvent) -> None:
        self.events.append(event)

    def reported(self, name: str) -> list[object]:
        return [event.values[name] for event in self.events if isinstance(event, Reported) and name in event.values]

    def endings(self) -> dict[str, Ended]:
        return {event.key: event for event in self.events if isinstance(event, Ended)}


@pytest.fixture(autouse=True)
def _tasks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def children() -> list[str]:
    """Child processes of this one, including those that ended and were not waited for."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def launch(place: Path, task: str, key: str = "one") -> TrialLaunch:
    return TrialLaunch(key, f"laboratory.trials.tasks:{task}", {"answer": 42}, place / key)


@pytest.mark.parametrize(
    ("cores", "jobs", "each", "expected"),
    [
        ([0, 1, 2, 3], 2, None, ((0, 1), (2, 3))),
        ([0, 1, 2, 3, 4], 2, None, ((0, 1, 2), (3, 4))),
        ([4, 7], 1, None, ((4, 7),)),
        ([4, 7], 3, None, ((4,), (7,), (4,))),
        ([0, 1, 2, 3], 2, 1, ((0,), (1,))),
        ([0, 1, 2, 3], 3, 2, ((0, 1), (2, 3), (0, 1))),
        ([0, 1], 1, 8, ((0, 1),)),
    ],
)
def test_jobs_share_the_cores(
    cores: list[int], jobs: int, each: int | None, expected: tuple[tuple[int, ...], ...]
) -> None:
    assert shares(cores, jobs, each) == expected


def test_a_job_is_pinned_to_its_core_and_number_of_threads(tmp_path: Path) -> None:
    log, before = EventLog(), os.sched_getaffinity(0)
    launcher = LocalLauncher(len(usable_cores()))
    launches = [launch(tmp_path, "look_around", str(job)) for job in usable_cores()]
    run_launches(launcher, launches, log, lambda: False)
    assert sorted(log.reported("cores")) == [[core] for core in usable_cores()]
    assert set(log.reported("threads")) == {"1"}
    assert log.reported("values")[0] == {"answer": 42}
    assert {ended.outcome for ended in log.endings().values()} == {Outcome.FINISHED}
    assert os.sched_getaffinity(0) == before


def test_the_output_of_a_job_is_in_its_directory(tmp_path: Path) -> None:
    run_launches(LocalLauncher(1), [launch(tmp_path, "look_around")], EventLog(), lambda: False)
    assert (tmp_path / "one" / "output.txt").read_text() == "hello from a task\n"


def test_warnings_of_a_job_are_reported_at_once(tmp_path: Path) -> None:
    log = EventLog()
    run_launches(LocalLauncher(1), [launch(tmp_path, "warn")], log, lambda: False)
    assert log.reported("warning") == ["Alert: slow"]
    assert "WARNING: Alert: slow" in (tmp_path / "one" / "output.txt").read_text()


def test_a_failed_job_has_its_cause_and_does_not_stop_the_others(tmp_path: Path) -> None:
    log = EventLog()
    launches = [launch(tmp_path, task, task) for task in ("fail", "die", "look_around")]
    run_launches(LocalLauncher(1), launches, log, lambda: False)
    endings = log.endings()
    assert endings["fail"] == Ended("fail", Outcome.FAILED, "ValueError: no such luck")
    assert endings["die"].outcome is Outcome.FAILED
    assert "it was killed by SIGKILL" in (endings["die"].cause or "")
    assert endings["look_around"].outcome is Outcome.FINISHED
    assert "Traceback" in (tmp_path / "fail" / "output.txt").read_text()


def test_a_request_to_stop_ends_running_jobs_and_starts_no_others(tmp_path: Path) -> None:
    log = EventLog()
    launches = (launch(tmp_path, "wait", key) for key in ("first", "second"))
    run_launches(LocalLauncher(1), launches, log, lambda: bool(log.reported("pid")))
    assert log.started_keys == ["first"]
    assert log.endings() == {"first": Ended("first", Outcome.STOPPED)}


def test_an_exception_leaves_no_process_behind(tmp_path: Path) -> None:
    log = EventLog()

    def launches() -> Iterator[TrialLaunch]:
        yield launch(tmp_path, "wait")
        raise KeyboardInterrupt

    before = children()
    with pytest.raises(KeyboardInterrupt):
        run_launches(LocalLauncher(2), launches(), log, lambda: False)
    assert log.started_keys == ["one"]
    assert children() == before


@pytest.mark.slow
def test_a_job_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path\n"
        "from laboratory.trials.test_launcher import EventLog, launch\n"
        "from rl4sys.laboratory.trials.launcher import run_launches\n"
        "from rl4sys.laboratory.trials.local_launcher import LocalLauncher\n"
        "class Shown(EventLog):\n"
        "    def handle(self, event): print(event.values['pid'], flush=True)\n"
        f"run_launches(LocalLauncher(1), [launch(Path({str(tmp_path)!r}), 'wait')], Shown(), lambda: False)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        wait_until(lambda: not Path(f"/proc/{child}").exists(), bystander, seconds=30)
    finally:
        bystander.kill()
        bystander.wait()
    assert not Path(f"/proc/{child}").exists()
