"""Every algorithm with convolutions: what it sees, what it trains, and that it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from image_environment import COMET, NETWORK, PIXELS
from rl4sys.experience import StreamKey
from rl4sys.experiments.config import ExperimentConfig, load_experiment
from rl4sys.policy import KeyedNoise, NumpyPolicy

from .training import DQN, PPO, Settings, components, greedy_return

REPLAY: Settings = {
    "gamma": 0.5,
    "lr": 0.001,
    "critic_lr": 0.005,
    "batch_size": 32,
    "train_frequency": 8,
    "updates_per_step": 0.25,
    "learning_starts": 200,
    "polyak": 0.05,
}


def experiment(algorithm: Settings, steps: int, *, continuous: bool = False, **pixels: Any) -> ExperimentConfig:
    environment = {"name": COMET, "num_envs": 8, "pixels": PIXELS | pixels, "kwargs": {"continuous": continuous}}
    values = {
        "algorithm": dict(algorithm),
        "environment": environment,
        "network": {"actor": NETWORK, "critic": NETWORK},
        "training": {"total_timesteps": steps},
    }
    return load_experiment(values | ({"buffer": {"size": 256}} if algorithm["name"] == "ppo" else {}))


@pytest.mark.parametrize(
    ("name", "continuous"),
    [
        *((name, False) for name in ("ppo", "dqn", "sac")),
        *((name, True) for name in ("ppo", "sac", "sql", "td3", "ddpg")),
    ],
)
def test_every_algorithm_trains_the_published_kernels(name: str, continuous: bool) -> None:
    settings = {"name": name} | ({} if name == "ppo" else {"batch_size": 16, "learning_starts": 24})
    parts = components(experiment(settings, 256, continuous=continuous, keep_state=True))
    learner = parts.learner()
    source = parts.source(learner)
    before = learner.store.newest
    while learner.store.newest.number < 2:
        segments = source.collect(learner.store.newest).segments
        learner.learn(segments)
    source.close()
    spec = learner.algorithm.policies.explore
    kernels = slice(0, sum(int(np.prod(t.shape)) for t in spec.program.tensors if t.name.startswith("actor.pixels.")))
    after = learner.store.newest
    assert kernels.stop == 8 * 6 * 4 * 4 + 8
    assert not np.isclose(before.blob[kernels], after.blob[kernels], rtol=0.0, atol=1e-7).all()
    policy = NumpyPolicy(spec, after.blob)
    shown = {array.name: segments[0].observation[array.name][:1] for array in spec.observation}
    noise = KeyedNoise(0, [StreamKey("test")], policy.noise_size)
    assert np.isfinite(policy.act(shown, noise.at(0)).action).all()


def test_ppo_learns_the_direction_of_flight_from_two_frames() -> None:
    assert greedy_return(experiment(PPO | {"lr": 0.005}, 1_792)) > 2.0


def test_one_frame_does_not_show_the_direction() -> None:
    assert abs(greedy_return(experiment(PPO | {"lr": 0.005}, 512, stack=1))) < 2.0


def test_dqn_learns_the_direction_of_flight() -> None:
    assert greedy_return(experiment(DQN | {"lr": 0.003, "batch_size": 32}, 896)) > 2.0


@pytest.mark.slow
def test_sac_learns_the_direction_of_flight() -> None:
    assert greedy_return(experiment(REPLAY | {"name": "sac", "temperature": 0.05}, 3_072)) > 1.5


@pytest.mark.slow
def test_td3_learns_to_follow_the_direction_of_flight() -> None:
    # A policy that ignores the pictures loses 1.5.
    settings = REPLAY | {"name": "td3", "exploration_std": 0.3}
    assert greedy_return(experiment(settings, 4_096, continuous=True)) > -1.1
