"""Training from Python: configs, environment objects, and what a finished run offers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import rl4sys
from experiments.runs import PPO, values
from rl4sys.config import ConfigError
from rl4sys.environments import UnknownEnvironment
from rl4sys.experiments import Run
from rl4sys.laboratory.run_index.index import Index

SMALL = {
    "buffer.size": 64,
    "algorithm.epochs": 1,
    "logging.terminal": False,
    "logging.tensorboard": False,
    "training.num_eval_episodes": 2,
    "training.eval_frequency": 64,
    "training.log_frequency": 64,
    "network.actor.hidden_dims": [8],
    "network.critic.hidden_dims": [8],
}


class Countdown(gymnasium.Env[np.ndarray, int]):
    """Eight steps, of which one action is paid."""

    observation_space = gymnasium.spaces.Box(0.0, 8.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2, start=1)

    def __init__(self, pay: float = 1.0) -> None:
        self.pay = pay

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.left = 8
        return np.array([8.0], np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert action in (1, 2)
        self.left -= 1
        return np.array([self.left], np.float32), self.pay * (action == 2), self.left == 0, False, {}


def trained(tmp_path: Path, env: Any, **overrides: Any) -> Run:
    changes = {**SMALL, "experiment.directory": str(tmp_path), **overrides}
    return rl4sys.train(env=env, algorithm="ppo", total_timesteps=128, overrides=changes)


def test_a_run_that_was_trained_from_python_is_in_the_index(tmp_path: Path) -> None:
    run = rl4sys.train(values(PPO, tmp_path), {"experiment.name": "mine", "logging.terminal": False})
    with Index(tmp_path) as index:
        (record,) = index.select()
    assert (record.id, record.status, record.steps) == (run.directory.path.name, "finished", 256)


def test_a_factory_makes_as_many_environments_as_are_needed(tmp_path: Path) -> None:
    run = trained(tmp_path, lambda: Countdown(pay=2.0), **{"environment.num_envs": 2})
    assert run.config.environment.name.startswith("object:environment")
    assert run.result is not None
    assert run.result.finished


def test_an_instance_is_copied_and_one_copy_acts(tmp_path: Path) -> None:
    instance = Countdown(pay=3.0)
    run = trained(tmp_path, instance)
    assert run.config.environment.num_envs == 1
    assert run.config.environment.name.startswith("object:Countdown")
    assert not hasattr(instance, "left")


def test_an_instance_that_cannot_be_copied_is_refused_with_advice(tmp_path: Path) -> None:
    instance = Countdown()
    instance.connection = (part for part in "a generator cannot be copied")  # type: ignore[attr-defined]
    with pytest.raises(UnknownEnvironment, match=r"Countdown cannot be copied .* env=lambda: Countdown\(…\)"):
        trained(tmp_path, instance)
    assert not list(tmp_path.iterdir())


def test_a_class_of_a_module_is_named_so_that_any_process_can_make_it(tmp_path: Path) -> None:
    run = trained(tmp_path, Countdown)
    assert run.config.environment.name == f"{Countdown.__module__}:Countdown"


def test_an_id_is_enough(tmp_path: Path) -> None:
    assert trained(tmp_path, "CartPole-v1").config.environment.name == "CartPole-v1"


def test_what_is_no_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownEnvironment, match="env is 3; expected the id of an environment"):
        trained(tmp_path, 3)
    with pytest.raises(UnknownEnvironment, match=r"made dict; expected a gymnasium\.Env"):
        trained(tmp_path, dict)
    with pytest.raises(ConfigError, match="give a config, or both env and algorithm"):
        rl4sys.train(env="CartPole-v1")


def test_an_object_cannot_be_made_in_other_processes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"training\.pipelined: the environment is an object of this Python process"):
        trained(tmp_path, lambda: Countdown(), **{"training.pipelined": True})


def test_a_run_of_an_object_resumes_in_its_process_and_says_why_not_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path, Countdown())
    Run.resume(run.directory).close()
    monkeypatch.setattr("rl4sys.environments.objects._factories", {})
    with pytest.raises(UnknownEnvironment, match=r"'object:Countdown\S*' was an object of the Python program that st"):
        Run.resume(run.directory)


def test_metrics_are_columns(tmp_path: Path) -> None:
    metrics = trained(tmp_path, "CartPole-v1").metrics()
    assert list(metrics["step"]) == [64, 64, 128, 128]
    assert np.isnan(metrics["evaluation/return"][0])
    assert metrics["evaluation/return"][1] > 0.0
    if importlib.util.find_spec("pandas") is None:
        assert isinstance(metrics, dict)


def test_a_policy_acts_in_a_loop_of_the_users_own(tmp_path: Path) -> None:
    policy = trained(tmp_path, Countdown).policy()
    environment = Countdown()
    observation, info = environment.reset(seed=0)
    actions, is_over = [], False
    while not is_over:
        actions.append(policy.act(observation, info))
        observation, _, terminated, truncated, info = environment.step(actions[-1])
        is_over = terminated or truncated
    assert len(actions) == 8
    assert set(actions) <= {1, 2}


def test_a_run_is_resumed_longer_and_another_begins_with_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = rl4sys.train(values(PPO, Path("runs")))
    longer = rl4sys.resume("last", {"training.total_timesteps": 288})
    assert (longer.directory, longer.steps) == (first.directory, 288)
    with pytest.raises(ConfigError, match="has done 288 of 288 steps"):
        rl4sys.resume("last")
    second = rl4sys.train(values(PPO, Path("runs")), start_from=first.directory.path, parts=["actor"])
    assert second.directory.read_manifest()["parent"]["parts"] == ["actor"]
