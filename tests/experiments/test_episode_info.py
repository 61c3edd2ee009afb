"""Numbers in `info` become metrics, and episodes rows, wherever experience is collected."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from reporting_environment import REGISTERED, REPORTING
from rl4sys.experiments import Run

from .runs import DQN, PPO, small


def rows(run: Run) -> list[dict[str, str]]:
    with run.directory.episodes.open(newline="") as file:
        return list(csv.DictReader(file))


def reporting(directory: Path, **overrides: Any) -> Run:
    settings = {"environment__name": REPORTING, "training__total_timesteps": 128, **overrides}
    return Run.create(small(PPO, directory, **settings))


@pytest.mark.parametrize(
    "place",
    [
        {},
        {"training__ranks": 2},
        pytest.param({"training__pipelined": True}, marks=pytest.mark.slow),
        pytest.param({"training__pipelined": True, "training__collectors": 2}, marks=pytest.mark.slow),
        {"environment__name": REGISTERED, "environment__backend": "vector"},
    ],
    ids=["here", "ranks", "pipelined", "pooled", "vector"],
)
def test_numbers_in_info_become_metrics(tmp_path: Path, place: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # Other processes import the environment, too.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    run = reporting(tmp_path, **place)
    run.train()
    metrics = run.latest_metrics()
    assert metrics["rollout/info/progress"] == 2.5
    assert 0.0 < metrics["rollout/success_rate"] < 1.0


def test_an_evaluation_has_a_success_rate(tmp_path: Path) -> None:
    run = reporting(tmp_path, training__num_eval_episodes=16)
    run.train()
    table = run.metrics()
    assert 0.0 < list(table["evaluation/success_rate"])[-1] < 1.0


def test_every_episode_has_a_row(tmp_path: Path) -> None:
    run = reporting(tmp_path)
    run.train()
    first = rows(run)[0]
    assert len(rows(run)) == 32
    assert first["return"] == "4.0"
    assert first["length"] == "4"
    assert first["ending"] == "terminated"
    assert first["progress"] == "2.5"
    assert first["is_success"] in ("0.0", "1.0")


@pytest.mark.parametrize("kind", [PPO, DQN], ids=["ppo", "dqn"])
def test_a_resumed_run_has_the_same_rows(tmp_path: Path, kind: dict[str, Any]) -> None:
    settings = {"environment__name": REPORTING, "training__total_timesteps": 192}
    whole = Run.create(small(kind, tmp_path / "whole", **settings))
    whole.train()
    cut = Run.create(small(kind, tmp_path / "cut", **settings))
    for _ in range(200):
        if cut.steps >= 100:
            break
        cut.step()
    cut.save()
    cut.step()
    cut.close()
    resumed = Run.resume(cut.directory)
    resumed.train()
    assert resumed.directory.episodes.read_bytes() == whole.directory.episodes.read_bytes()


def test_an_environment_without_numbers_has_no_such_metrics(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path))
    run.train()
    assert not [name for name in run.latest_metrics() if "info" in name or "success" in name]
    assert list(rows(run)[0]) == ["episode", "step", "lane", "return", "length", "ending"]
