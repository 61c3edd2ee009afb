"""Names of settings in other libraries lead to ours, whatever the section."""

from __future__ import annotations

from typing import Any

import pytest

from rl4sys.config import ConfigError
from rl4sys.experiments import load_experiment

PPO = {"algorithm": {"name": "ppo"}, "environment": {"name": "CartPole-v1"}}
SAC = {"algorithm": {"name": "sac"}, "environment": {"name": "Pendulum-v1"}}


@pytest.mark.parametrize(
    ("experiment", "given", "meant"),
    [
        (PPO, "learning_rate", "algorithm.lr"),
        (PPO, "training.lr", "algorithm.lr"),
        (PPO, "algorithm.total_timesteps", "training.total_timesteps"),
        (PPO, "n_steps", "buffer.size"),
        (SAC, "n_steps", "algorithm.n_step"),
        (PPO, "ent_coef", "algorithm.entropy_coef"),
        (SAC, "ent_coef", "algorithm.initial_temperature"),
        (PPO, "batch_size", "algorithm.minibatch_size"),
        (SAC, "batch_size", "algorithm.batch_size"),
        (PPO, "model.fcnet_hiddens", "network.actor.hidden_dims"),
        (PPO, "num_env_runners", "training.collectors"),
        (PPO, "totl_timesteps", "training.total_timesteps"),
    ],
)
def test_a_name_of_another_library_gets_the_exact_key(experiment: dict[str, Any], given: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"^The override .*unknown key; did you mean '{meant}'\?$"):
        load_experiment(experiment, {given: 1})


def test_several_wrong_overrides_are_not_blamed_on_the_file() -> None:
    with pytest.raises(ConfigError, match="2 problems in the overrides"):
        load_experiment("ppo_CartPole-v1.yaml", ["algorithm.lr=x", "zzz=1"])
