from __future__ import annotations

from pathlib import Path

import pytest

from experiments.runs import PPO, small
from rl4sys.experiments import Result, Run, RunDirectory

from .commands import Here


@pytest.fixture
def interrupted(rl4sys: Here) -> RunDirectory:
    """A run that was stopped after 96 of 256 steps."""
    run = Run.create(small(PPO, Path("runs")))
    run.train(stop=lambda: run.steps >= 96)
    return run.directory


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_run_is_resumed_until_it_is_finished(rl4sys: Here, interrupted: RunDirectory) -> None:
    code, out, err = rl4sys("resume", "ppo-")
    assert code == 0
    assert "resuming  at step 96" in err
    assert "steps             256" in out
    code, out, _ = rl4sys("resume", "ppo-")
    assert (code, "is finished: 256 steps." in out) == (0, True)


def test_a_damaged_checkpoint_is_skipped_in_one_line(rl4sys: Here, interrupted: RunDirectory) -> None:
    flip(interrupted.checkpoints / "000000000096" / "arrays.safetensors")
    code, _, err = rl4sys("resume", str(interrupted.path))
    assert code == 0
    (warning,) = (line for line in err.splitlines() if line.startswith("warning: "))
    assert "Skipped a damaged checkpoint (000000000096: arrays" in warning
    assert "using the one of step 64" in warning


def test_without_an_intact_checkpoint_resuming_is_an_error(rl4sys: Here, interrupted: RunDirectory) -> None:
    for path in interrupted.checkpoints.glob("0*/manifest.json"):
        flip(path)
    code, _, err = rl4sys("resume", str(interrupted.path))
    assert code == 2
    assert err.startswith("error: No usable checkpoint in ")
    assert err.count("manifest.json is not what was written") == 3


def test_evaluating_skips_a_damaged_best_checkpoint(rl4sys: Here, interrupted: RunDirectory) -> None:
    rl4sys("resume", str(interrupted.path))
    best = (interrupted.checkpoints / "best").resolve()
    flip(best / "arrays.safetensors")
    code, out, err = rl4sys("evaluate", str(interrupted.path), "--episodes", "1", "--json")
    assert code == 0
    assert f"skipped a damaged checkpoint ({best.name}" in err
    assert '"skipped": [\n' in out


def test_a_run_killed_before_its_first_checkpoint_starts_over(rl4sys: Here) -> None:
    with Run.create(small(PPO, Path("runs"))) as run:
        pass
    code, _, err = rl4sys("resume", str(run.directory.path))
    assert (code, "has no checkpoint yet: starting from the beginning" in err) == (0, True)
    code, _, err = rl4sys("evaluate", str(run.directory.path), "--episodes", "1")
    assert code == 0


def test_a_finished_run_trains_on_with_more_steps(rl4sys: Here, interrupted: RunDirectory) -> None:
    rl4sys("resume", "last")
    code, _, err = rl4sys("resume", "last", "algorithm.lr=1e-3")
    assert (code, "has done 256 of 256 steps; train longer with training.total_timesteps=512" in err) == (2, True)
    code, out, err = rl4sys("resume", "last", "training.total_timesteps=320")
    assert (code, "steps             320" in out) == (0, True), err
    assert "Continuing, not exact: training.total_timesteps was 256, now 320" in err
    assert "not exact    step 256: training.total_timesteps was 256, now 320" in rl4sys("show", "last").out


def test_a_run_goes_back_to_the_checkpoint_of_a_step(rl4sys: Here, interrupted: RunDirectory) -> None:
    code, _, err = rl4sys("resume", "last", "--from-step", "70")
    assert (code, "no checkpoint of step 70; there are: 0, 64, 96." in err) == (2, True)
    code, _, err = rl4sys("resume", "last", "--from-step", "64")
    assert (code, "resuming  at step 64" in err) == (0, True)


def test_training_begins_with_the_weights_of_a_run(rl4sys: Here, interrupted: RunDirectory, config: Path) -> None:
    code, _, err = rl4sys("train", str(config), "--from", "last", "--parts", "actor", "--name", "second")
    assert (code, f"weights   of {interrupted.path}" in err) == (0, True)
    out = rl4sys("show", "second").out
    assert f"began with   the weights (actor) of {interrupted.path} at step 96" in out
    assert "second-seed0" in rl4sys("list", "parent=*ppo-CartPole*").out
    code, _, err = rl4sys("train", str(config), "--parts", "actor")
    assert (code, "give one: --from" in err) == (2, True)


def test_going_back_undoes_the_settings_that_were_changed_later(rl4sys: Here) -> None:
    run = Run.create(small(PPO, Path("runs"), training__keep_checkpoints=9))
    whole = run.train().fingerprint
    later = ["algorithm.lr=0.5", "algorithm.schedules.lr=cosine", "training.total_timesteps=288"]
    assert rl4sys("resume", "last", *later).code == 0
    assert rl4sys("resume", "last", "training.total_timesteps=320", "algorithm.lr=0.7").code == 0
    code, _, err = rl4sys("resume", "last", "--from-step", "192")
    assert (code, "Settings that were changed after step 192 are as they were: " in err) == (0, True), err
    assert "algorithm.lr=0.0003" in err
    assert Result.read(run.directory.result).fingerprint == whole
    assert "not exact" not in rl4sys("show", "last").out
