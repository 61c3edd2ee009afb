"""Experiments small enough for a test, run through the same components as `rl4sys train`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from rl4sys.environments import Grade
from rl4sys.experiments.components import Components
from rl4sys.experiments.config import ExperimentConfig, load_experiment
from rl4sys.learning import Learner
from rl4sys.seeding import Seeds

Settings = Mapping[str, Any]

PPO: Settings = {"name": "ppo", "lr": 0.01, "gamma": 0.5, "epochs": 4, "minibatch_size": 128, "log_std_init": -0.5}
DQN: Settings = {
    "name": "dqn",
    "lr": 0.005,
    "gamma": 0.5,
    "batch_size": 64,
    "train_frequency": 8,
    "gradient_steps": 2,
    "learning_starts": 100,
    "target_update_interval": 20,
    "exploration_fraction": 0.5,
}


def experiment(algorithm: Settings, name: str, /, *, steps: int, **sections: Any) -> ExperimentConfig:
    """Eight lanes of a diagnostic environment; `env` holds its arguments, the other sections are as in a file."""
    hidden = {"hidden_dims": [32]}
    values = {
        "algorithm": dict(algorithm),
        "environment": {"name": f"rl4sys/{name}-v0", "num_envs": 8, "kwargs": sections.pop("env", {})},
        "network": {"actor": hidden, "critic": hidden},
        "training": {"total_timesteps": steps},
    }
    if algorithm["name"] == "ppo":
        values["buffer"] = {"size": 256}
    for name, section in sections.items():
        values[name] = {**values.get(name, {}), **section}
    return load_experiment(values)


def components(config: ExperimentConfig, grade: Grade = Grade.E3) -> Components:
    return Components(config, torch.device("cpu"), grade)


def trained(config: ExperimentConfig) -> Learner:
    """The learner of a whole run."""
    parts = components(config)
    learner = parts.learner()
    source = parts.source(learner)
    while learner.steps < config.training.total_timesteps:
        learner.learn(source.collect(learner.store.newest).segments)
    source.close()
    return learner


def greedy_return(config: ExperimentConfig) -> float:
    """The mean return of the exploit policy after a whole run."""
    return components(config).evaluate(trained(config), episodes=16, seeds=Seeds(1)).mean
