"""The global config.json of the original RL4Sys as the config of a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rl4sys.config import ConfigError
from rl4sys.server.config import load_config, server_options

ORIGINAL: dict[str, Any] = {
    "algorithms": {
        "A2C": {},
        "C51": {"n_atoms": 51, "v_min": -500, "q_lr": 1e-5},
        "DDPG": {
            "seed": 1,
            "gamma": 0.99,
            "tau": 0.01,
            "learning_rate": 0.003,
            "batch_size": 128,
            "buffer_size": 50_000,
            "learning_starts": 128,
            "policy_frequency": 1,
            "noise_scale": 0.001,
            "train_iters": 10,
        },
        "DQN": {
            "seed": 1,
            "learning_rate": 0.0004,
            "batch_size": 128,
            "gamma": 0.99,
            "tau": 0.001,
            "target_network_frequency": 1,
            "buffer_size": 10_000,
            "start_e": 1.0,
            "end_e": 0.1,
            "exploration_fraction": 0.5,
            "learning_starts": 128,
            "train_frequency": 10,
            "train_iters": 2,
            "total_timesteps": 500_000,
        },
        "PPO": {
            "batch_size": 512,
            "seed": 0,
            "traj_per_epoch": 4,
            "clip_ratio": 0.2,
            "gamma": 0.99,
            "lam": 0.95,
            "pi_lr": 0.0005,
            "vf_lr": 0.0005,
            "train_pi_iters": 4,
            "train_v_iters": 4,
            "target_kl": None,
        },
        "SAC": {
            "discrete": True,
            "adaptive_alpha": False,
            "act_dim": 4,
            "batch_size": 128,
            "seed": 0,
            "traj_per_epoch": 128,
            "log_std_min": -20,
            "log_std_max": 2,
            "gamma": 0.99,
            "polyak": 0.995,
            "alpha": 0.2,
            "lr": 0.0003,
            "clip_grad_norm": 1,
            "train_update_freq": 1,
            "train_iters": 50,
        },
        "TD3": {
            "seed": 1,
            "gamma": 0.99,
            "tau": 0.005,
            "learning_rate": 0.0003,
            "batch_size": 256,
            "buffer_size": 1_000_000,
            "exploration_noise": 0.1,
            "policy_noise": 0.2,
            "noise_clip": 0.5,
            "learning_starts": 25_000,
            "policy_frequency": 2,
        },
        "TRPO": {},
    },
    "ensemble_algorithms": {},
    "max_traj_length": 1000,
    "model_paths": {"load_model": "models/", "save_model": "models/"},
    "server": {"training_server": "localhost:50051"},
    "tensorboard": {"tensorboard_writer": {"scalar_tags": "AverageEpRet", "global_step_tag": "Epoch"}},
}


def written(tmp_path: Path, values: dict[str, Any]) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values))
    return path


def test_the_sections_are_offered_as_experiments(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = load_config(written(tmp_path, ORIGINAL), {})
    assert config.listen == "localhost:50051"
    assert sorted(config.experiments) == ["ddpg", "default", "dqn", "ppo", "sac", "td3"]
    assert config.experiments["default"] == config.experiments["ppo"]
    assert config.experiments["ppo"]["buffer"] == {"size": 4000}
    assert config.experiments["dqn"]["algorithm"]["exploration_steps"] == 250_000
    (line,) = [record.message for record in caplog.records]
    assert line.startswith("algorithms: A2C, C51, TRPO are only names here")


@pytest.mark.slow
def test_every_offered_experiment_can_be_built(tmp_path: Path) -> None:
    options = server_options(load_config(written(tmp_path, ORIGINAL), {})).service
    options.offers.require_sound("threads")


def test_an_address_in_parts_is_joined(tmp_path: Path) -> None:
    parts = {"prefix": "tcp://", "host": "localhost", "port": ":5556"}
    server = {"training_server": parts, "trajectory_server": parts | {"port": ":5555"}}
    assert load_config(written(tmp_path, ORIGINAL | {"server": server}), {}).listen == "localhost:5556"


def test_settings_of_this_server_may_be_added(tmp_path: Path) -> None:
    added = {"data": "learners", "experiments": {"mine": {"algorithm": "dqn"}}}
    config = load_config(written(tmp_path, ORIGINAL | added), {"listen": "127.0.0.1:0"})
    assert (config.data, config.listen) == (tmp_path / "learners", "127.0.0.1:0")
    assert {"mine", "ppo"} <= config.experiments.keys()


@pytest.mark.parametrize(
    ("algorithms", "message"),
    [
        ({"PPPO": {}}, r"algorithms\.PPPO: got 'PPPO'.*did you mean 'ppo'"),
        ({"PPO": {"clip_rati": 0.2}}, r"clip_rati: PPO has no such parameter; did you mean 'clip_ratio'"),
        ({"PPO": 3}, "algorithms.PPO: got 3; expected a mapping"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, algorithms: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(written(tmp_path, {"algorithms": algorithms}), {})
