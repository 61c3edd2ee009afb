from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import rl4sys
from rl4sys.checkpoints import NoCheckpoint
from rl4sys.config import ConfigError
from rl4sys.experiments import (
    DeviceUnavailable,
    LoggerUnavailable,
    Run,
    RunBusy,
    RunDamaged,
    load_experiment,
)
from rl4sys.experiments.components import Components

from .runs import DQN, PPO, small, values


def test_the_same_config_and_seed_give_the_same_run(tmp_path: Path) -> None:
    config = small(PPO, tmp_path)
    assert Run.create(config).train().fingerprint == Run.create(config).train().fingerprint


def test_another_seed_gives_another_run(tmp_path: Path) -> None:
    first, second = (Run.create(small(DQN, tmp_path, seed=seed)).train().fingerprint for seed in (0, 1))
    assert all(first[part] != second[part] for part in first)


def test_training_in_python_returns_a_run_to_look_at(tmp_path: Path) -> None:
    run = rl4sys.train(values(PPO, tmp_path), {"seed": 3, "experiment.name": "mine"})
    assert run.result is not None
    assert run.result.finished
    assert (run.directory.path / "policies" / "best.rl4sys").is_file()
    assert len(run.evaluate(episodes=3).returns) == 3
    assert repr(run).startswith("<Run mine, seed 3: 256 of 256 steps, best ")


def test_an_interrupted_run_is_saved_and_can_be_resumed(tmp_path: Path) -> None:
    config = small(PPO, tmp_path)
    run = Run.create(config)
    result = run.train(stop=lambda: run.steps >= 96)
    assert (result.steps, result.finished) == (96, False)
    assert Run.resume(run.directory).train().fingerprint == Run.create(config).train().fingerprint


def test_a_run_that_cannot_start_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(Components, "source", broken)
    with pytest.raises(OSError, match="no more processes"):
        Run.create(small(PPO, tmp_path))
    assert os.listdir(tmp_path) == []


def test_a_missing_gpu_is_refused_or_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = small(PPO, tmp_path, device="cuda:63")
    with pytest.raises(DeviceUnavailable, match=r"device=auto \(or --allow-fallback\)"):
        Run.create(config)
    assert os.listdir(tmp_path) == []
    with Run.create(config, allow_fallback=True) as run:
        assert "instead of 'cuda:63'" in caplog.text
        assert load_experiment(run.directory.config).experiment.device in ("cpu", "cuda")


def test_a_missing_logger_is_refused_or_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    settings = values(PPO, tmp_path) | {"logging": {"terminal": False, "wandb": {"enabled": True}}}
    with pytest.raises(LoggerUnavailable, match=r"pip install 'rl4sys\[wandb\]'.*logging.wandb.enabled=false"):
        rl4sys.train(settings)
    assert os.listdir(tmp_path) == []
    run = rl4sys.train(settings, allow_fallback=True)
    assert "logging.wandb.enabled: the package 'wandb' is not installed; training without this logger" in caplog.text
    assert not load_experiment(run.directory.config).logging.wandb.enabled


def test_a_run_has_one_writer(tmp_path: Path) -> None:
    with Run.create(small(PPO, tmp_path)) as run, pytest.raises(RunBusy, match="in use by another process"):
        Run.resume(run.directory)
    Run.resume(run.directory).close()


def test_a_run_killed_before_its_first_checkpoint_starts_from_the_beginning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Run.create(small(PPO, tmp_path)) as run:
        run.step()
    again = Run.resume(run.directory)
    assert again.steps == 0
    assert "has no checkpoint yet: starting from the beginning" in caplog.text
    assert again.train().fingerprint == Run.create(small(PPO, tmp_path)).train().fingerprint


def test_a_run_without_a_good_checkpoint_says_so_and_lets_go(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path))
    run.train()
    for manifest in run.directory.checkpoints.glob("*/manifest.json"):
        manifest.write_bytes(b"{}")
    for _ in range(2):
        with pytest.raises(NoCheckpoint, match="No usable checkpoint"):
            Run.resume(run.directory)


def test_a_damaged_manifest_is_refused(tmp_path: Path) -> None:
    with Run.create(small(PPO, tmp_path)) as run:
        run.directory.manifest.write_text("{")
    with pytest.raises(RunDamaged, match=r"manifest.json is damaged .* train it again with: rl4sys train"):
        Run.resume(run.directory)


def test_parts_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ppo cannot learn from a 'uniform' buffer"):
        Run.create(small(PPO, tmp_path, buffer__type="uniform"))
    with pytest.raises(ConfigError, match="4 steps cannot be shared by 9 environments"):
        Run.create(small(PPO, tmp_path, buffer__size=4, environment__num_envs=9))
    with pytest.raises(ConfigError, match=r"ppo takes the newest only .* to false or algorithm.max_age to at least 1"):
        Run.create(small(PPO, tmp_path, algorithm__max_age=0, training__pipelined=True))
    assert os.listdir(tmp_path) == []
