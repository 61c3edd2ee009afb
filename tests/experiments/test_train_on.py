"""Training on: more steps, other settings, and from an earlier step."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl4sys.config import ConfigError
from rl4sys.experiments import Run, load_experiment

from .runs import DQN, PPO, small


def test_a_finished_run_trains_longer_and_says_that_this_is_not_exact(tmp_path: Path) -> None:
    first = Run.create(small(PPO, tmp_path))
    first.train()
    run = Run.resume(first.directory, overrides=["training.total_timesteps=320", "algorithm.lr=0.5"])
    assert not run.directory.result.is_file(), "a run that is killed now is not finished"
    assert run.train().steps == 320
    assert run.inexact == (
        "step 256: algorithm.lr was 0.0003, now 0.5",
        "step 256: training.total_timesteps was 256, now 320",
    )
    assert load_experiment(run.directory.config).algorithm.model_dump()["lr"] == 0.5
    (change,) = run.directory.read_manifest()["changes"]
    assert change == {"step": 256, "settings": {"algorithm.lr": [0.0003, 0.5], "training.total_timesteps": [256, 320]}}


def test_settings_that_do_not_affect_learning_leave_a_run_exact(tmp_path: Path) -> None:
    first = Run.create(small(PPO, tmp_path))
    first.train(stop=lambda: first.steps >= 96)
    with Run.resume(first.directory, overrides={"logging.terminal": True}) as run:
        assert run.inexact == ()
    with Run.resume(first.directory) as run:
        assert (run.config.logging.terminal, run.inexact) == (True, ())


@pytest.mark.parametrize("kind", [PPO, DQN])
def test_going_back_to_a_step_repeats_what_followed_exactly(tmp_path: Path, kind: dict[str, object]) -> None:
    run = Run.create(small(kind, tmp_path))
    whole = run.train()
    again = Run.resume(run.directory, step=192)
    again.abandon_later_steps()
    assert again.train().fingerprint == whole.fingerprint
    assert again.inexact == ()


def test_after_going_back_nothing_later_is_left(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path))
    run.train()
    with Run.resume(run.directory, step=192) as again:
        again.abandon_later_steps()
    assert sorted(path.name for path in run.directory.checkpoints.iterdir() if path.name.isdigit())[-1] == f"{192:012d}"
    assert not run.directory.result.is_file()
    with Run.resume(run.directory) as again:
        assert again.steps == 192


@pytest.mark.parametrize("change", ["seed=3", "environment.num_envs=4", "network.actor.hidden_dims=[4]"])
def test_what_makes_another_run_is_refused_with_the_command_for_it(tmp_path: Path, change: str) -> None:
    run = Run.create(small(PPO, tmp_path))
    run.train(stop=lambda: run.steps >= 64)
    with pytest.raises(ConfigError, match=r"cannot change within a run.*: rl4sys train .* --from "):
        Run.resume(run.directory, overrides=[change])
