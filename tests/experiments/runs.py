"""Runs small enough for a test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl4sys.experiments import ExperimentConfig, load_experiment

PPO: Mapping[str, Any] = {
    "algorithm": {"name": "ppo", "epochs": 2, "minibatch_size": 16},
    "environment": {"name": "CartPole-v1", "num_envs": 2},
    "buffer": {"size": 32},
}
DQN: Mapping[str, Any] = {
    "algorithm": {"name": "dqn", "batch_size": 16, "learning_starts": 50, "train_frequency": 8},
    "environment": {"name": "CartPole-v1", "num_envs": 2},
    "buffer": {"type": "prioritized", "size": 150},
}
OFF_POLICY: Mapping[str, Any] = {
    "algorithm": {"batch_size": 16, "learning_starts": 50, "train_frequency": 8, "updates_per_step": 0.25},
    "environment": {"num_envs": 2},
    "buffer": {"type": "uniform", "size": 150},
}
PETS: Mapping[str, Any] = {
    "algorithm": {
        "name": "pets",
        "batch_size": 16,
        "learning_starts": 50,
        "train_frequency": 8,
        "updates_per_step": 0.25,
        "dynamics": {"hidden_dims": [8], "size": 2},
        "horizon": 4,
        "candidates": 12,
        "elites": 3,
        "exploration_std": 0.1,
    },
    "environment": {"num_envs": 2},
    "buffer": {"type": "uniform", "size": 150},
    # Its networks are those of its model.
    "network": {},
}
WORLD_MODEL: Mapping[str, Any] = {
    "algorithm": {
        "size": "pico",
        "batch_size": 2,
        "sequence_length": 8,
        "learning_starts": 50,
        "updates_per_step": 0.1,
        "warmup_steps": 0,
    },
    "environment": {"num_envs": 2},
    "buffer": {"type": "sequences", "size": 150},
    "network": {},
}
SMALL: Mapping[str, Any] = {
    "network": {"actor": {"hidden_dims": [8]}, "critic": {"hidden_dims": [8]}},
    "training": {
        "total_timesteps": 256,
        "eval_frequency": 128,
        "num_eval_episodes": 2,
        "checkpoint_frequency": 64,
        "log_frequency": 32,
    },
    "logging": {"terminal": False, "tensorboard": False},
}


def values(kind: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """The settings of a small run, as they would stand in a file."""
    return {**SMALL, **kind, "experiment": {"threads": 1, "directory": str(directory)}}


def small(kind: Mapping[str, Any], directory: Path, **overrides: Any) -> ExperimentConfig:
    """A small experiment; overrides use two underscores for a dot."""
    return load_experiment(values(kind, directory), {key.replace("__", "."): value for key, value in overrides.items()})
