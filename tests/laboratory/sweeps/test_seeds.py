"""Runs with several seeds, by a launcher in this process; tests of the command start real processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from cli.commands import Here, write_config
from experiments.runs import PPO, values
from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, TrialEvent, TrialLaunch
from rl4sys.laboratory.trials.trial import train

SEEDS = ("train", "small.yaml", "--seed", "1,2", "--jobs", "2")


class InlineLauncher:
    """Runs launches at once, in this process."""

    has_free_slot = True

    def __init__(self, jobs: int, cores_each: int | None = None) -> None:
        self._events: list[TrialEvent] = []

    def describe(self) -> str:
        return "all here"

    @property
    def is_busy(self) -> bool:
        return bool(self._events)

    def start(self, launch: TrialLaunch) -> None:
        launch.directory.mkdir(parents=True, exist_ok=True)
        (launch.directory / "output.txt").write_text("hello\n" if launch.key == "0" else "")
        events = self._events
        try:
            finished = train(launch.values, lambda values: events.append(Reported(launch.key, values)), lambda: False)
        except ZeroDivisionError as error:
            events.append(Ended(launch.key, Outcome.FAILED, str(error)))
        else:
            events.append(Ended(launch.key, Outcome.FINISHED if finished else Outcome.STOPPED))

    def events(self, seconds: float) -> Sequence[TrialEvent]:
        events, self._events = self._events, []
        return events

    def ask_to_stop(self) -> None:
        raise AssertionError("no test asks it to stop")

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def rl4sys(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    """The command, in a directory with a small config."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rl4sys.laboratory.trials.local_launcher.LocalLauncher", InlineLauncher)
    write_config(tmp_path / "small.yaml", values(PPO, Path("runs")))
    return Here(monkeypatch, capsys)


def test_the_output_of_a_run_is_kept_in_it(rl4sys: Here) -> None:
    code, out, err = rl4sys(*SEEDS)
    assert (code, out.count("runs/ppo-CartPole-v1-seed")) == (0, 2), err
    (output,) = Path("runs").glob("*/output.txt")
    assert (output.parent.name.startswith("ppo-CartPole-v1-seed1-"), output.read_text()) == (True, "hello\n")
    assert not list(Path("runs").glob(".*.starting"))


def test_runs_that_an_alert_stopped_are_listed_with_their_resume_command(rl4sys: Here) -> None:
    code, out, err = rl4sys(*SEEDS, "alerts=[{when: step >= 96, do: [stop]}]")
    assert (code, out) == (3, "")
    assert err.count("stopped by an alert (step >= 96: at step 96 step is 96): ppo-CartPole-v1, seed ") == 2
    assert err.count("; resume with: rl4sys resume runs/ppo-CartPole-v1-seed") == 2


def test_a_run_that_cannot_start_leaves_its_output(rl4sys: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rl4sys.experiments.run_plan.threads_for", lambda *given: 1 // 0)
    code, out, err = rl4sys(*SEEDS)
    assert (code, out) == (1, ""), err
    (output,) = Path("runs").glob(".*.starting/output.txt")
    assert f"failed: ppo-CartPole-v1, seed 1; its output is in {output}\n" in err
    assert "error: 2 of 2 runs failed:\n  ppo-CartPole-v1, seed 1: integer division" in err


def test_an_error_of_all_runs_is_reported_before_the_first_starts(rl4sys: Here) -> None:
    code, out, err = rl4sys(*SEEDS, "device=cuda:7")
    assert (code, out, err.count("cuda:7"), Path("runs").exists()) == (2, "", 1, False)


def test_a_sweep_runs_through_the_same_driver_and_counts_a_trial_that_an_alert_stopped_as_failed(
    rl4sys: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rl4sys.laboratory.trials.local_launcher.LocalLauncher", InlineLauncher)
    sweep = {"base_config": "small.yaml", "sweep": {"algorithm.lr": [1e-3]}}
    sweep["overrides"] = {"alerts": [{"when": "step >= 96", "do": ["stop"]}]}
    Path("sweep.yaml").write_text(yaml.safe_dump(sweep))
    code, _, err = rl4sys("sweep", "sweep.yaml")
    cause = "an alert stopped it, with a checkpoint: step >= 96: at step 96"
    assert (code, f"1/1 lr=0.001, seed 0: failed: {cause}" in err) == (1, True)
    (trial,) = json.loads(Path("runs/sweep/summary.json").read_text())["trials"]
    assert (trial["status"], trial["cause"].startswith(cause)) == ("failed", True)
    code, _, err = rl4sys("sweep", "sweep.yaml")
    assert (code, "lr=0.001, seed 0: resumes at step 96" in err, "1/1 lr=0.001, seed 0: finished" in err) == (
        0,
        True,
        True,
    )


def test_unfinished_seeds_are_resumed_as_a_group(rl4sys: Here) -> None:
    rl4sys(*SEEDS, "alerts=[{when: step >= 96, do: [stop]}]")
    code, out, err = rl4sys("resume", "ppo-CartPole", "--jobs", "2")
    assert (code, out.count("runs/ppo-CartPole-v1-seed")) == (0, 2), err
    assert "2 unfinished of one experiment, with seeds 1, 2" in err
    assert all(json.loads(path.read_text())["steps"] == 256 for path in Path("runs").glob("*/result.json"))
    assert len(list(Path("runs").glob("ppo-*"))) == 3, "two runs and their plot"
