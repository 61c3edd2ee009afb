"""Learning gates of offline algorithms, from data that is recorded here (`make test-learning`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from incumbents import balance
from rl4sys.collection import RecordedEpisode, record_episodes, save_episodes
from rl4sys.experience import Array
from rl4sys.experiments import Run, load_experiment

SEEDS = 1, 2, 3
TD3_BC = {"name": "td3_bc", "lr": 1e-3, "gamma": 0.95, "value_weight": 10.0}


def swing_up(observation: Array) -> Array:
    """Pump energy into Pendulum until it is near the top, and hold it there."""
    cosine, sine, speed = observation
    if cosine > 0.85:
        torque = -10.0 * np.arctan2(sine, cosine) - 2.5 * speed
    else:
        lacks_energy = 0.5 * speed**2 + 15.0 * (cosine - 1.0) < 0.0
        torque = (2.0 if lacks_energy else -1.0) * np.sign(speed or 1.0)
    return np.clip([torque], -2.0, 2.0).astype(np.float32)


def mixed_episodes(count: int) -> list[RecordedEpisode]:
    """Half of them swing up with some noise, the others act at random."""
    rng, environment = np.random.default_rng(0), gymnasium.make("Pendulum-v1")

    def able(observation: Array) -> Array:
        return np.clip(swing_up(observation) + rng.normal(0.0, 0.3, 1), -2.0, 2.0).astype(np.float32)

    def random(observation: Array) -> Array:
        return rng.uniform(-2.0, 2.0, 1).astype(np.float32)

    return [record_episodes(environment, able if number % 2 else random, 1, number)[0] for number in range(count)]


def score(algorithm: dict[str, Any], environment: str, data: Path, steps: int, seed: int) -> float:
    config = load_experiment(
        {
            "algorithm": algorithm,
            "environment": {"name": environment},
            "buffer": {"size": 20_000},
            "training": {"total_timesteps": steps, "eval_frequency": 0, "data": str(data)},
            "experiment": {"seed": seed, "threads": 1, "directory": str(data.parent)},
            "logging": {"terminal": False, "tensorboard": False},
        }
    )
    run = Run.create(config)
    run.train()
    return run.evaluate(50, seed=seed).mean


@pytest.mark.learning
def test_behaviour_cloning_reaches_the_recorded_return(tmp_path: Path) -> None:
    episodes = record_episodes(gymnasium.make("CartPole-v1"), balance, 30)
    save_episodes(tmp_path / "data.npz", episodes)
    recorded = float(np.mean([episode.reward.sum() for episode in episodes]))
    scores = [score({"name": "bc"}, "CartPole-v1", tmp_path / "data.npz", 4_000, seed) for seed in SEEDS]
    print(f"\nbc: recorded {recorded:.1f}, seeds {[round(each, 1) for each in scores]}")
    assert min(scores) >= 0.95 * recorded


@pytest.mark.learning
def test_offline_learning_beats_cloning_on_data_of_mixed_quality(tmp_path: Path) -> None:
    save_episodes(tmp_path / "data.npz", mixed_episodes(100))
    cloned, learned = (
        [score(algorithm, "Pendulum-v1", tmp_path / "data.npz", 10_000, seed) for seed in SEEDS]
        for algorithm in ({"name": "bc"}, TD3_BC)
    )
    print(f"\nbc {[round(each) for each in cloned]}, td3_bc {[round(each) for each in learned]}")
    assert min(learned) > max(cloned) + 300
