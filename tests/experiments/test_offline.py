"""Runs that learn from recorded data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import pytest

from incumbents import balance, damp
from rl4sys.collection import record_episodes, save_episodes
from rl4sys.config import ConfigError
from rl4sys.experiments import ExperimentConfig, Run

from .runs import OFF_POLICY, PPO, small

CASES: dict[str, dict[str, Any]] = {
    "bc on choices": {"algorithm__name": "bc", "environment__name": "CartPole-v1"},
    "bc": {"algorithm__name": "bc", "environment__name": "Pendulum-v1"},
    "iql": {"algorithm__name": "iql", "environment__name": "Pendulum-v1", "environment__normalize_obs": True},
    "td3_bc": {"algorithm__name": "td3_bc", "environment__name": "Pendulum-v1", "environment__normalize_reward": True},
    "sac": {"algorithm__name": "sac", "environment__name": "Pendulum-v1"},
}
SMALL = {"algorithm": {"batch_size": 16, "learning_starts": 50}, "buffer": {"type": "uniform", "size": 150}}


def config_of(case: str, directory: Path) -> ExperimentConfig:
    changes = CASES[case]
    name = changes["environment__name"]
    episodes = record_episodes(gymnasium.make(name), balance if name == "CartPole-v1" else damp, 1)
    save_episodes(directory / "data.npz", episodes)
    return small(SMALL, directory, **changes, training__data=str(directory / "data.npz"))


@pytest.mark.parametrize("case", CASES)
def test_a_resumed_run_on_data_equals_the_uninterrupted_one(tmp_path: Path, case: str) -> None:
    config = config_of(case, tmp_path)
    expected = Run.create(config).train().fingerprint
    with Run.create(config) as run:
        run.step()
        run.step()
        run.save()
        run.step()
    resumed = Run.resume(run.directory)
    assert {**resumed.train().fingerprint, "metrics": ""} == {**expected, "metrics": ""}
    assert resumed.inexact == ()


def test_data_is_refused_where_it_cannot_be_learned_from(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ppo learns from what its own policy has just done"):
        Run.create(small(PPO, tmp_path, training__data="data.npz"))
    with pytest.raises(ConfigError, match=r"bc learns from recorded data: give it with --data"):
        Run.create(small(SMALL, tmp_path, **CASES["bc"]))
    sac = CASES["sac"] | {"training__data": "data.npz", "training__pipelined": True}
    with pytest.raises(ConfigError, match=r"nothing is collected, so leave out training\.pipelined"):
        Run.create(small(OFF_POLICY, tmp_path, **sac))


def test_experiments_without_data_have_the_digest_that_they_had(tmp_path: Path) -> None:
    config = small(PPO, tmp_path)
    assert "data" in config.model_dump()["training"]
    with_data = config.model_copy(update={"training": config.training.model_copy(update={"data": "data.npz"})})
    assert config.digest() != with_data.digest()


def test_learning_from_data_starts_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config_of("iql", tmp_path)
    data, short = str(tmp_path / "data.npz"), {"algorithm": {"batch_size": 16}, "buffer": SMALL["buffer"]}
    run = Run.create(small(short, tmp_path, **CASES["iql"], training__data=data, training__total_timesteps=64))
    before = run.learner.algorithm.train_state.policy_weights().copy()
    assert run.config.algorithm.model_dump()["learning_starts"] == 0
    run.train()
    assert "nothing will be learned" not in caplog.text
    assert (run.learner.algorithm.train_state.policy_weights() != before).any()
    assert config_of("iql", tmp_path).algorithm.model_dump()["learning_starts"] == 50, "a given one is kept"
