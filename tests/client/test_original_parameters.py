from __future__ import annotations

from typing import Any

import pytest
from tests.client.test_settings import FLAT, with_parameters

from rl4sys.algorithms import ALGORITHMS
from rl4sys.client import SettingsError, load_settings
from rl4sys.client.original_settings import original_names
from rl4sys.policy import BoxAction, DiscreteAction


def config(name: str, **parameters: Any) -> dict[str, Any]:
    return {"client_id": "c", "algorithm_name": name, "algorithm_parameters": parameters, "max_traj_length": 1000}


def translated(name: str, **parameters: Any) -> dict[str, Any]:
    settings = load_settings(config(name, **parameters))
    chosen: dict[str, Any] = settings.parameters.get("algorithm", {})
    ALGORITHMS.type(settings.algorithm).model_validate(chosen)
    return chosen


CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("PPO", {"ent_coef": 0.01, "vf_coef": 0.4}, {"entropy_coef": 0.01, "value_coef": 0.4}),
    ("PPO", {"clip_coef": 0.3, "update_epochs": 4}, {"clip_ratio": 0.3, "epochs": 4}),
    ("PPO", {"max_grad_norm": 0}, {"max_grad_norm": None}),
    ("PPO", {"clip_vloss": True, "clip_ratio": 0.1}, {"clip_ratio": 0.1, "clip_value": 0.1}),
    ("PPO", {"clip_vloss": False, "norm_adv": False}, {"clip_value": None, "normalize_advantage": False}),
    ("PPO", {"num_steps": 2048, "num_minibatches": 32}, {"minibatch_size": 64}),
    (
        "DQN",
        {"start_e": 1.0, "end_e": 0.1, "tau": 0.001},
        {"epsilon_start": 1.0, "epsilon_end": 0.1, "polyak": 0.001},
    ),
    (
        "DQN",
        {"exploration_fraction": 0.5, "total_timesteps": 1000},
        {"exploration_fraction": 0.5, "exploration_steps": 500},
    ),
    ("DQN", {"train_iters": 2, "train_frequency": 10}, {"gradient_steps": 2, "train_frequency": 10}),
    (
        "DQN",
        {"epsilon": 1.0, "epsilon_min": 0.5, "epsilon_decay": 0.01},
        {"epsilon_start": 1.0, "epsilon_end": 0.5, "exploration_steps": 50},
    ),
    ("DQN", {"epsilon_min": 0.25, "epsilon_decay": 0.99}, {"epsilon_end": 0.25, "exploration_steps": 138}),
    (
        "DQN",
        {"target_network_frequency": 5, "max_grad_norm": 0.0},
        {"target_update_interval": 5, "max_grad_norm": None},
    ),
    (
        "SAC",
        {"polyak": 0.995, "alpha": 0.2, "adaptive_alpha": False},
        {"polyak": pytest.approx(0.005), "temperature": 0.2},
    ),
    (
        "SAC",
        {"alpha": 0.2, "adaptive_alpha": True, "clip_grad_norm": 1},
        {"initial_temperature": 0.2, "max_grad_norm": 1},
    ),
    ("SAC", {"train_iters": 50, "train_update_freq": 100}, {"train_frequency": 100, "updates_per_step": 0.5}),
    ("SAC", {"log_std_min": -20, "log_std_max": 2, "traj_per_epoch": 128}, {}),
    (
        "DDPG",
        {"tau": 0.01, "noise_scale": 0.001, "policy_frequency": 1},
        {"polyak": 0.01, "exploration_std": 0.001},
    ),
    ("DDPG", {"train_iters": 10, "learning_rate": 0.003}, {"updates_per_step": 1.0, "lr": 0.003}),
    ("TD3", {"policy_noise": 0.2, "noise_clip": 0.5}, {"target_noise": 0.2, "target_noise_clip": 0.5}),
    ("TD3", {"exploration_noise": 0.1, "policy_frequency": 2}, {"exploration_std": 0.1, "policy_delay": 2}),
]
"""Original parameters of an algorithm, and what they become."""


@pytest.mark.parametrize(("name", "given", "expected"), CASES)
def test_an_original_name_keeps_its_meaning(name: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert translated(name, **given) == expected


def test_a_continuous_ppo_acts_with_a_vector() -> None:
    settings = load_settings(config("PPO_Continuous", act_dim=2, input_size=8) | {"type": "onpolicy", "act_limit": 2.0})
    assert (settings.algorithm, settings.action) == ("ppo", BoxAction((-2.0, -2.0), (2.0, 2.0)))


def test_a_discrete_sac_chooses() -> None:
    assert load_settings(config("SAC", act_dim=4, discrete=True)).action == DiscreteAction(4)
    assert load_settings(config("SAC", act_dim=1)).action == BoxAction((-1.0,), (1.0,))


def test_a_batch_of_many_long_trajectories_fits_into_memory() -> None:
    given = with_parameters(input_size=1024, traj_per_epoch=25_600, batch_size=512) | {"max_traj_length": 25_600}
    assert load_settings(given).parameters["buffer"] == {"size": 65_536}


def test_a_hidden_size_describes_the_network() -> None:
    network = load_settings(config("PPO", hidden_size=64)).parameters["network"]
    assert network["actor"]["hidden_dims"] == [64, 64]


@pytest.mark.parametrize(("name", "instead"), [("TRPO", "PPO"), ("A2C", "PPO"), ("C51", "DQN"), ("RPO", "PPO")])
def test_an_algorithm_that_was_only_named_gets_one_line(name: str, instead: str) -> None:
    with pytest.raises(SettingsError, match=f"^algorithm_name: '{name}' is only a name here; use {instead}"):
        load_settings(config(name))


def test_a_misspelt_algorithm_gets_a_suggestion() -> None:
    with pytest.raises(SettingsError, match="did you mean 'ppo'"):
        load_settings(config("PPPO"))


def test_the_settings_of_original_clients_are_read() -> None:
    more = {"enable_compression": True, "connection_timeout_seconds": 7, "request_timeout_seconds": 30}
    given = FLAT | more | {"log_level": "INFO", "debug": False, "algorithm_type": "onpolicy"}
    assert load_settings(given).timeout == 7
    assert load_settings(FLAT | {"request_timeout_seconds": 30}).timeout == 30
    assert (original_names(given).log_level, original_names(given).debug) == ("INFO", False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"enable_compression": "yes"}, "enable_compression: got 'yes'; expected true or false"),
        ({"log_level": "LOUD"}, "log_level: got 'LOUD'; expected one of"),
        ({"connection_timeout_seconds": -1}, "timeout"),
    ],
)
def test_a_wrong_value_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(FLAT | given)
