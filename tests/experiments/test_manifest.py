from __future__ import annotations

from pathlib import Path

from rl4sys.experiments import load_experiment
from rl4sys.experiments.manifest import given_settings

from .runs import PPO, values


def test_the_settings_that_were_given_are_known() -> None:
    config = load_experiment(
        {"algorithm": {"name": "ppo", "lr": 1e-3}, "environment": {"name": "CartPole-v1"}},
        ["training.total_timesteps=100", "logging.tensorboard=false"],
    )
    given = given_settings(config)
    assert given is not None
    assert {"algorithm.lr", "training.total_timesteps", "logging.tensorboard"} <= set(given)
    assert not {"algorithm.gamma", "where.on", "logging.terminal", "training.eval_frequency"} & set(given)


def test_a_config_with_every_default_written_out_does_not_say_what_was_given(tmp_path: Path) -> None:
    whole = load_experiment(values(PPO, tmp_path)).model_dump(mode="json")
    assert given_settings(load_experiment(whole)) is None
