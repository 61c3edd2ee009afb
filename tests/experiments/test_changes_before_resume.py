"""A resumed run compares what may change its bits with what it began with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from rl4sys.experiments import Run, RunDirectory

from .runs import PPO, small


def in_manifest(name: str, value: object) -> Callable[[RunDirectory], None]:
    def change(directory: RunDirectory) -> None:
        directory.write_manifest(directory.read_manifest() | {name: value})

    return change


def other_learning_rate(directory: RunDirectory) -> None:
    values = yaml.safe_load(directory.config.read_text())
    values["algorithm"]["lr"] = 0.125
    directory.config.write_text(yaml.safe_dump(values))


CHANGES: dict[str, tuple[Callable[[RunDirectory], None], str]] = {
    "rl4sys": (in_manifest("rl4sys", "0.0.0"), "rl4sys was 0.0.0, now "),
    "python": (in_manifest("python", "2.7"), "python was 2.7, now 3."),
    "packages": (in_manifest("packages", {"torch": "0.1"}), "packages was {'torch': '0.1'}, now "),
    "cpu": (in_manifest("cpu", "Z80"), "cpu was Z80, now "),
    "device": (in_manifest("device", "cuda:7"), "device was cuda:7, now cpu"),
    "config": (other_learning_rate, "config.yaml was changed"),
    "seed": (in_manifest("seed", 99), "seed was 99, now "),
}


def interrupted(directory: Path) -> Run:
    run = Run.create(small(PPO, directory, device="cpu", environment__kwargs={"render_mode": None}))
    run.train(stop=lambda: run.steps >= 64)
    return run


@pytest.mark.parametrize("what", CHANGES)
def test_changes_since_the_run_began_are_reported_and_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    directory = interrupted(tmp_path).directory
    change, message = CHANGES[what]
    change(directory)
    Run.resume(directory).close()
    assert caplog.text.count(f"Continuing, not exact: {message}") == 1
    (kept,) = json.loads(directory.manifest.read_text())["inexact"]
    assert kept.startswith(f"step 64: {message}")


def test_a_run_under_the_same_conditions_is_not_called_inexact(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = interrupted(tmp_path).directory
    with Run.resume(directory) as resumed:
        assert resumed.inexact == ()
    assert "not exact" not in caplog.text
    assert json.loads(directory.manifest.read_text())["inexact"] == []


def test_another_place_name_or_device_of_a_config_is_the_same_experiment(tmp_path: Path) -> None:
    here, there = (
        small(PPO, tmp_path, device="cpu"),
        small(PPO, tmp_path / "there", device="auto", name="other", seed=5),
    )
    assert here.digest() == there.digest() != small(PPO, tmp_path, algorithm__gamma=0.5).digest()
