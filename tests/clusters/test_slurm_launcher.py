"""Trials as SLURM jobs: real processes under a fake sbatch, which are lost, requeued, stopped and found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from laboratory.trials.test_launcher import EventLog
from rl4sys.clusters.program_calls import ProgramMissing
from rl4sys.clusters.slurm_launcher import SlurmLauncher, SlurmOptions, SlurmOptionsError
from rl4sys.clusters.slurm_queue import SlurmRefused
from rl4sys.laboratory.trials.launcher import Ended, Outcome, TrialLaunch, run_launches

from .fake_slurm import FakeSlurm

FAST = SlurmOptions(jobs=2, poll_seconds=0.0, lag_seconds=0.0)


def launch(task: str, key: str = "one", **options: bool) -> TrialLaunch:
    return TrialLaunch(key, f"{task}", {"answer": 42, "run": None}, Path("runs") / key, **options)


def tasks(name: str) -> str:
    return f"clusters.slurm_tasks:{name}"


class Interference(EventLog):
    """Does something to a job when it reports for the first time."""

    def __init__(self, slurm: FakeSlurm, **loss: object) -> None:
        super().__init__()
        self._slurm, self._loss = slurm, loss

    def handle(self, event: object) -> None:
        super().handle(event)
        if len(self.reported("began")) == 1 and self._loss:
            self._slurm.lose(1, **self._loss)
            self._loss = {}


def run(log: EventLog, *launches: TrialLaunch, options: SlurmOptions = FAST) -> dict[str, Ended]:
    run_launches(SlurmLauncher(options), launches, log, lambda: False)
    return log.endings()


def test_every_launch_is_one_job_with_its_options(slurm: FakeSlurm, tmp_path: Path) -> None:
    log = EventLog()
    endings = run(log, launch(tasks("look"), "one"), launch(tasks("look"), "two"))
    assert {end.outcome for end in endings.values()} == {Outcome.FINISHED}
    assert log.reported("answer") == [42, 42]
    assert slurm.numbers() == [1, 2]
    assert slurm.argv(1)[2:-1] == [
        "--cpus-per-task=1",
        "--requeue",
        "--signal=B:TERM@120",
        f"--chdir={tmp_path}",
        f"--output={tmp_path}/runs/one/output.txt",
        "--open-mode=append",
    ]


def test_gpus_and_cpus_are_asked_for(slurm: FakeSlurm) -> None:
    log = EventLog()
    run(log, launch(tasks("look")), options=SlurmOptions(1, cpus=3, gpus=2, poll_seconds=0.0, lag_seconds=0.0))
    assert {"--cpus-per-task=3", "--gpus=2"} <= set(slurm.argv())
    assert log.reported("threads") == ["3"]


def test_a_preempted_job_continues_its_run_under_its_number(slurm: FakeSlurm) -> None:
    log = Interference(slurm, state="PREEMPTED", requeue=True)
    assert run(log, launch(tasks("begin_or_finish")))["one"].outcome is Outcome.FINISHED
    assert (slurm.numbers(), log.reported("continued")) == ([1], ["runs/one/the-run"])


def test_a_job_whose_node_fails_is_submitted_again_and_continues_its_run(slurm: FakeSlurm) -> None:
    log = Interference(slurm, state="NODE_FAIL")
    assert run(log, launch(tasks("begin_or_finish")))["one"].outcome is Outcome.FINISHED
    assert (slurm.numbers(), log.reported("continued")) == ([1, 2], ["runs/one/the-run"])
    assert "job 1 ended as NODE_FAIL; it continues as job 2" in log.reported("warning")


def test_a_time_limit_is_not_a_loss(slurm: FakeSlurm) -> None:
    options = SlurmOptions(1, retries=0, poll_seconds=0.0, lag_seconds=0.0)
    log = EventLog()
    assert run(log, launch(tasks("learn_until_the_time_limit")), options=options)["one"].outcome is Outcome.FINISHED
    assert slurm.numbers() == [1, 2, 3]


@pytest.mark.parametrize(
    ("state", "said"), [("NODE_FAIL", "ended as NODE_FAIL, lost once"), ("OUT_OF_MEMORY", "SBATCH_MEM_PER_CPU")]
)
def test_losses_beyond_the_retries_are_failures(slurm: FakeSlurm, state: str, said: str) -> None:
    options = SlurmOptions(1, retries=0, poll_seconds=0.0, lag_seconds=0.0)
    end = run(Interference(slurm, state=state), launch(tasks("begin_or_finish")), options=options)["one"]
    assert (end.outcome, said in str(end.cause)) == (Outcome.FAILED, True)


def test_a_failing_trial_is_not_retried_and_says_why(slurm: FakeSlurm) -> None:
    end = run(EventLog(), launch("laboratory.trials.tasks:fail"))["one"]
    assert (end.outcome, end.cause) == (Outcome.FAILED, "ValueError: no such luck")
    assert slurm.numbers() == [1]


def test_running_jobs_save_and_waiting_ones_are_cancelled_on_request(slurm: FakeSlurm) -> None:
    launcher, log = SlurmLauncher(FAST), EventLog()
    launcher.start(launch("laboratory.trials.tasks:wait", "runs"))
    while not log.reported("pid"):
        for event in launcher.events(0.01):
            log.handle(event)
    (slurm.jobs / "full").touch()
    launcher.start(launch("laboratory.trials.tasks:wait", "waits"))
    launcher.ask_to_stop()
    while launcher.is_busy:
        for event in launcher.events(0.01):
            log.handle(event)
    assert {key: end.outcome for key, end in log.endings().items()} == dict.fromkeys(("runs", "waits"), Outcome.STOPPED)


def test_a_second_interrupt_cancels_the_jobs(slurm: FakeSlurm) -> None:
    launcher = SlurmLauncher(FAST)
    launcher.start(launch("laboratory.trials.tasks:wait"))
    launcher.close()
    slurm.end_all()
    assert (slurm.state(1), launcher.is_busy) == ("CANCELLED", False)


def test_a_job_of_a_killed_driver_is_found_again(slurm: FakeSlurm) -> None:
    first, log = SlurmLauncher(FAST), EventLog()
    first.start(launch("laboratory.trials.tasks:wait"))
    second = SlurmLauncher(FAST)
    second.start(launch("laboratory.trials.tasks:wait"))
    while not log.reported("pid"):
        for event in second.events(0.01):
            log.handle(event)
    assert slurm.numbers() == [1]


def test_a_job_that_slurm_has_forgotten_ended_as_its_reports_say(slurm: FakeSlurm) -> None:
    launcher, log = SlurmLauncher(FAST), EventLog()
    launcher.start(launch(tasks("look")))
    while not log.reported("answer"):
        for event in launcher.events(0.01):
            log.handle(event)
    while slurm.state(1) == "RUNNING":
        pass
    (slurm.jobs / "1" / "forgotten").touch()
    while launcher.is_busy:
        for event in launcher.events(0.01):
            log.handle(event)
    assert log.endings()["one"].outcome is Outcome.FINISHED


def test_nothing_is_left_of_a_temporary_launch_but_the_run_with_its_output(slurm: FakeSlurm) -> None:
    log = EventLog()
    run(log, launch(tasks("make_a_run"), is_temporary=True))
    assert sorted(path.name for path in Path("runs").iterdir()) == [".slurm", "a-run"]
    assert list(Path("runs/.slurm").iterdir()) == []
    assert "made" in Path("runs/a-run/output.txt").read_text()
    assert log.reported("output")[-1] == "runs/a-run/output.txt"


def test_a_refused_job_is_one_sentence_with_what_to_set(slurm: FakeSlurm) -> None:
    (slurm.jobs / "refuse").touch()
    with pytest.raises(SlurmRefused, match=r"Invalid partition.*SBATCH_PARTITION"):
        SlurmLauncher(FAST).start(launch(tasks("look")))


def test_a_later_refusal_fails_its_trial_alone(slurm: FakeSlurm) -> None:
    launcher = SlurmLauncher(FAST)
    launcher.start(launch(tasks("look")))
    (slurm.jobs / "refuse").touch()
    launcher.start(launch(tasks("look"), "two"))
    ended = {event.key: event.outcome for event in launcher.events(0.01) if isinstance(event, Ended)}
    assert ended["two"] is Outcome.FAILED


def test_a_missing_sbatch_is_refused_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramMissing, match="This needs the command 'sbatch'"):
        SlurmLauncher(FAST)


def test_half_a_gpu_is_refused(slurm: FakeSlurm) -> None:
    with pytest.raises(SlurmOptionsError, match="whole GPUs"):
        SlurmLauncher(SlurmOptions(1, gpus=0.5))
