"""`rl4sys model`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.runs import PETS, PPO
from experiments.trained import trained_run
from rl4sys.experiments import RunDirectory

from .commands import Here


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return trained_run(PETS, tmp_path_factory.mktemp("model"), environment__name="Pendulum-v1")


def test_the_model_of_a_run_is_compared_with_fresh_episodes(rl4sys: Here, trained: RunDirectory) -> None:
    code, out, err = rl4sys("model", str(trained.path), "--steps", "40", "--horizon", "5")
    assert (code, err) == (0, "")
    assert "error 5 steps ahead" in out
    assert "90 % intervals hold" in out
    assert "times as much off the data" in out
    assert Path("model.png").stat().st_size > 1_000


def test_the_numbers_are_printed_as_json(rl4sys: Here, trained: RunDirectory) -> None:
    found = json.loads(rl4sys("model", str(trained.path), "--steps", "80", "--output", "a.png", "--json").out)
    assert len(found["open_loop_error"]) == len(found["copy_last_error"]) == 15
    assert found["coverage"].keys() >= {"0.5", "0.9"}
    assert (found["step"], found["plot"]) == (256, "a.png")


def test_a_run_without_a_model_is_an_error(rl4sys: Here, tmp_path: Path) -> None:
    code, _, err = rl4sys("model", str(trained_run(PPO, tmp_path).path))
    assert code == 2
    assert "learns no model" in err
