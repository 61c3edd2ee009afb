"""The same launcher under a real SLURM: jobs that end, are stopped, requeued and killed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from laboratory.trials.test_launcher import EventLog
from rl4sys.clusters.slurm_launcher import SlurmLauncher, SlurmOptions
from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, run_launches

from .conftest import TESTS
from .real_slurm import can_start, running_slurm
from .test_slurm_launcher import launch, tasks

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not can_start(), reason="needs root and Debian's packages slurm-wlm and munge"),
]
OPTIONS = SlurmOptions(jobs=2, poll_seconds=0.5, lag_seconds=5.0)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with running_slurm(tmp_path_factory.mktemp("slurm")) as config:
        yield config


@pytest.fixture(autouse=True)
def _inside(slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm))
    monkeypatch.setenv("PYTHONPATH", f"{TESTS}:{TESTS.parent / 'src'}")
    monkeypatch.setenv("SBATCH_TIMELIMIT", "10")
    monkeypatch.chdir(tmp_path)


class When(EventLog):
    """Does something once a task has begun."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act: Callable[[], None] | None = act

    def handle(self, event: Reported | Ended) -> None:
        super().handle(event)
        if self._act is not None and (self.reported("began") or self.reported("pid")):
            act, self._act = self._act, None
            act()


def jobs(state: str) -> list[str]:
    command = ["squeue", "--noheader", "--format=%i", f"--states={state}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_jobs_finish_with_their_reports() -> None:
    log = EventLog()
    run_launches(SlurmLauncher(OPTIONS), [launch(tasks("look"), key) for key in "abc"], log, lambda: False)
    assert {end.outcome for end in log.endings().values()} == {Outcome.FINISHED}
    assert log.reported("answer") == [42] * 3


def test_a_job_is_stopped_with_sigterm() -> None:
    launcher = SlurmLauncher(OPTIONS)
    log = When(launcher.ask_to_stop)
    run_launches(launcher, [launch("laboratory.trials.tasks:wait")], log, lambda: False)
    assert log.endings()["one"].outcome is Outcome.STOPPED
    assert log.reported("warning") == []


def test_a_requeued_job_continues_its_run() -> None:
    def requeue() -> None:
        (number,) = jobs("RUNNING")
        subprocess.run(["scontrol", "requeue", number], check=True)
        while number not in jobs("PENDING"):
            pass
        # SLURM waits two minutes before a requeued job starts.
        subprocess.run(["scontrol", "update", f"JobId={number}", "StartTime=now"], check=True)

    log = When(requeue)
    run_launches(SlurmLauncher(OPTIONS), [launch(tasks("begin_or_finish"))], log, lambda: False)
    assert log.endings()["one"].outcome is Outcome.FINISHED
    assert log.reported("continued") == ["runs/one/the-run"]


def test_a_killed_job_is_submitted_again() -> None:
    def kill() -> None:
        (directory,) = Path("runs/.slurm").iterdir()
        own = [pid for pid in os.listdir("/proc") if pid.isdecimal() and _runs(pid, str(directory.resolve()))]
        for pid in own:
            os.kill(int(pid), signal.SIGKILL)

    log = When(kill)
    run_launches(SlurmLauncher(OPTIONS), [launch(tasks("begin_or_finish"))], log, lambda: False)
    assert log.endings()["one"].outcome is Outcome.FINISHED
    assert "it continues as job" in str(log.reported("warning")[0])


def test_a_time_limit_is_announced_and_the_trial_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    # 120 s ahead of one minute is at once.
    monkeypatch.setenv("SBATCH_TIMELIMIT", "1")
    log = EventLog()
    run_launches(SlurmLauncher(OPTIONS), [launch(tasks("begin_or_finish"))], log, lambda: False)
    assert log.endings()["one"].outcome is Outcome.FINISHED
    assert log.reported("continued") == ["runs/one/the-run"]


def _runs(pid: str, directory: str) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return False
    return "slurm_worker" in command and directory in command
