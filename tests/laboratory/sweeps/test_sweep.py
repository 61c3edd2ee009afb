"""Sweeps with real trials in real processes: killed, stopped, failed, and run again."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.commands import Here, finish, start, wait_until, write_config
from experiments.runs import PPO, values
from rl4sys.experiments import Result, Run, load_experiment
from rl4sys.laboratory.trials.trial import Trial, TrialOptions, run_in, train

RATES = [1e-3, 3e-3]


@pytest.fixture
def rl4sys(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    """The command, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return Here(monkeypatch, capsys)


def write_sweep(place: Path, steps: int = 256, **changes: Any) -> Path:
    write_config(place / "base.yaml", values(PPO, Path("runs")))
    sweep = {
        "base_config": "base.yaml",
        "overrides": {"training.total_timesteps": steps, "training.checkpoint_frequency": 512},
        "sweep": {"algorithm.lr": RATES},
        "parallel_jobs": 2,
        **changes,
    }
    (place / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    return place / "sweep.yaml"


def summary(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / "runs/sweep/summary.json").read_text())
    return found


def fingerprints(place: Path) -> list[object]:
    """Fingerprints of all trials of a sweep, in the order of their learning rates."""
    runs = [run_in(path) for path in sorted((place / "runs/sweep").iterdir()) if path.is_dir()]
    results = [Result.read(run.result) for run in runs if run is not None]
    assert all(result is not None and result.finished for result in results)
    return [result.fingerprint for result in results if result is not None]


def whole(place: Path, steps: int) -> list[object]:
    """Fingerprints of the same trials without an interruption."""
    found: list[object] = []
    for rate in RATES:
        changes = {
            "algorithm.lr": rate,
            "training.total_timesteps": steps,
            "training.checkpoint_frequency": 512,
            "directory": str(place / "whole"),
        }
        found.append(Run.create(load_experiment(place / "base.yaml", changes)).train().fingerprint)
    return found


def has_begun(place: Path) -> bool:
    """Whether both trials have trained for a while."""
    return len([path for path in place.glob("runs/sweep/*/*/metrics.jsonl") if path.stat().st_size > 2_000]) == 2


def test_a_dry_run_shows_the_count_and_the_configs(rl4sys: Here, tmp_path: Path) -> None:
    write_sweep(tmp_path, seeds=[0, 1, 2])
    code, out, err = rl4sys("sweep", "sweep.yaml", "--dry-run")
    documents = list(yaml.safe_load_all(out))
    assert (code, len(documents)) == (0, 6)
    assert "# trial 1 of 6: lr=0.001, seed 0" in out
    assert "6 trials on this machine; nothing was started." in err
    assert [document["algorithm"]["lr"] for document in documents] == RATES * 3
    assert not (tmp_path / "runs").exists()
    shown = json.loads(rl4sys("sweep", "sweep.yaml", "--dry-run", "--json").out)
    assert shown["count"] == 6
    assert load_experiment(shown["trials"][5]["config"]).experiment.seed == 2


def test_a_dry_run_of_a_study_shows_its_space_and_an_example(rl4sys: Here, tmp_path: Path) -> None:
    code, out, err = rl4sys("tune", "ppo.yaml", "--dry-run", "--trials", "1")
    space, example = yaml.safe_load_all(out)
    assert (code, example["algorithm"]["name"]) == (0, "ppo")
    assert example["buffer"]["size"] in space["space"]["buffer.size"]
    assert "1 trial on this machine, such as this one; nothing was started." in err
    shown = json.loads(rl4sys("tune", "ppo.yaml", "--dry-run", "--json").out)
    assert (shown["count"], shown["space"]) == (50, space["space"])
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("command", ["sweep", "tune"])
def test_the_commands_have_help_with_examples(rl4sys: Here, command: str) -> None:
    code, out, _ = rl4sys(command, "--help")
    text = " ".join(out.split())
    assert code == 0
    assert f"Examples rl4sys {command}" in text
    assert "that was stopped or killed" in text
    assert all(
        option in text
        for option in ("--name", "--jobs", "--cpus", "--dry-run", "--json", "--allow-fallback", "--debug")
    )


def test_a_missing_device_is_reported_before_anything_starts(rl4sys: Here, tmp_path: Path) -> None:
    write_sweep(tmp_path)
    code, _, err = rl4sys("sweep", "sweep.yaml", "device=cuda:7")
    assert code == 2
    assert "cuda:7" in err
    assert not (tmp_path / "runs").exists()


def test_without_optuna_the_extra_is_named(rl4sys: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = rl4sys("tune", "ppo.yaml")
    assert (code, err) == (
        2,
        "error: Tuning needs the package 'optuna'. Install it with: pip install 'rl4sys[tune]'\n",
    )


@pytest.mark.slow
def test_a_failed_trial_does_not_stop_the_others(tmp_path: Path) -> None:
    write_sweep(tmp_path, sweep={"environment.name": ["CartPole-v1", "NoSuch-v0", "Acrobot-v1"]})
    code, out, err = finish(start("sweep", "sweep.yaml", cwd=tmp_path), 180)
    assert code == 1
    assert "error: 1 of 3 trials failed; run it again to try them again:\n  name=NoSuch-v0-seed0-" in err
    found = summary(tmp_path)
    assert [trial["status"] for trial in found["trials"]] == ["finished", "failed", "finished"]
    assert "NoSuch" in found["trials"][1]["cause"]
    assert out.index("name=CartPole-v1") < out.index("name=Acrobot-v1") < out.index("name=NoSuch-v0")
    assert (tmp_path / "runs/sweep/summary.png").read_bytes().startswith(b"\x89PNG")


def test_a_trial_that_an_alert_stopped_reports_it_and_can_be_resumed(tmp_path: Path) -> None:
    changes = {"directory": str(tmp_path / "place"), "alerts": [{"when": "step >= 96", "do": ["stop"]}]}
    launch = Trial("trial", load_experiment(values(PPO, tmp_path), changes)).launch(TrialOptions())
    reports: list[Mapping[str, Any]] = []
    assert not train(launch.values, reports.append, lambda: False)
    assert reports[-1] == {"alert": "step >= 96: at step 96 step is 96"}
    assert train(launch.values, reports.append, lambda: False)


@pytest.mark.slow
def test_a_trial_that_is_solved_early_counts_as_a_success_of_its_sweep(tmp_path: Path) -> None:
    alerts = [{"when": "step >= 96", "do": ["solved"]}]
    write_sweep(tmp_path, overrides={"training.total_timesteps": 256, "alerts": alerts})
    code, _, err = finish(start("sweep", "sweep.yaml", cwd=tmp_path), 180)
    assert code == 0, err
    assert [(trial["status"], trial["steps"]) for trial in summary(tmp_path)["trials"]] == [("finished", 96)] * 2


def test_a_trial_that_is_solved_has_finished_and_reports_no_alert(tmp_path: Path) -> None:
    changes = {"directory": str(tmp_path / "place"), "alerts": [{"when": "step >= 96", "do": ["solved"]}]}
    launch = Trial("trial", load_experiment(values(PPO, tmp_path), changes)).launch(TrialOptions())
    reports: list[Mapping[str, Any]] = []
    assert train(launch.values, reports.append, lambda: False)
    assert not any("alert" in report for report in reports)
    run = run_in(tmp_path / "place")
    result = None if run is None else Result.read(run.result)
    assert result is not None
    assert (result.finished, result.steps) == (True, 96)


def test_an_alert_at_the_last_step_stops_nothing(tmp_path: Path) -> None:
    changes = {"directory": str(tmp_path / "place"), "alerts": [{"when": "step >= 256", "do": ["stop"]}]}
    launch = Trial("trial", load_experiment(values(PPO, tmp_path), changes)).launch(TrialOptions())
    reports: list[Mapping[str, Any]] = []
    assert train(launch.values, reports.append, lambda: False)
    assert not any("alert" in report for report in reports)


@pytest.mark.slow
def test_a_killed_sweep_resumes_exactly(tmp_path: Path) -> None:
    write_sweep(tmp_path, steps=1_500)
    process = start("sweep", "sweep.yaml", cwd=tmp_path)
    wait_until(lambda: has_begun(tmp_path), process, 120)
    process.kill()
    finish(process)
    # At once: the trials of the killed sweep may still be saving.
    code, out, err = finish(start("sweep", "sweep.yaml", "--json", cwd=tmp_path), 180)
    assert code == 0, err
    assert [trial["status"] for trial in json.loads(out)["trials"]] == ["finished", "finished"]
    assert len(list(tmp_path.glob("runs/sweep/*/*/manifest.json"))) == 2
    assert fingerprints(tmp_path) == whole(tmp_path, 1_500)
    again = finish(start("sweep", "sweep.yaml", "--json", cwd=tmp_path), 120)
    assert json.loads(again.out)["trials"] == json.loads(out)["trials"]
    assert "started" not in again.err


@pytest.mark.slow
def test_a_killed_trial_is_reported_and_resumes_exactly(tmp_path: Path) -> None:
    write_sweep(tmp_path, steps=5_000)
    process = start("sweep", "sweep.yaml", cwd=tmp_path)
    wait_until(lambda: has_begun(tmp_path), process, 120)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    code, _, err = finish(process, 180)
    assert code == 1
    assert "1 of 2 trials failed" in err
    assert "it was killed by SIGKILL" in err
    assert sorted(trial["status"] for trial in summary(tmp_path)["trials"]) == ["failed", "finished"]
    code, _, err = finish(start("sweep", "sweep.yaml", cwd=tmp_path), 180)
    assert code == 0, err
    assert fingerprints(tmp_path) == whole(tmp_path, 5_000)


@pytest.mark.slow
def test_ctrl_c_ends_trials_with_a_checkpoint(tmp_path: Path) -> None:
    write_sweep(tmp_path, steps=10_000_000, seeds=[0, 1])
    process = start("sweep", "sweep.yaml", cwd=tmp_path)
    wait_until(lambda: has_begun(tmp_path), process, 120)
    refused = finish(start("sweep", "sweep.yaml", cwd=tmp_path))
    assert refused.code == 2
    assert "in use by another process" in refused.err
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process, 120)
    assert code == 130, err
    assert "0 of 4 trials are finished; run the same command to continue" in err
    statuses = [trial["status"] for trial in summary(tmp_path)["trials"]]
    assert sorted(statuses) == ["interrupted", "interrupted", "waiting", "waiting"]
    for path in tmp_path.glob("runs/sweep/*/*/result.json"):
        result = Result.read(path)
        assert result is not None
        assert (path.parent / "checkpoints" / f"{result.steps:012d}").is_dir()
