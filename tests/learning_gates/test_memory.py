"""Learning gates for networks with memory: tasks that no policy without memory can solve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rl4sys.experiments import Run, load_experiment

EPISODES = 100
SEEDS = (1, 2, 3)
GATES = {
    "ppo_recall.yaml": 0.95,
    "ppo_recall_gru.yaml": 0.95,
    "ppo_recall_transformer.yaml": 0.95,
    "ppo_cartpole_velocity_free.yaml": 475,
    "ppo_pendulum_velocity_free.yaml": -300,
    "sac_pendulum_velocity_free.yaml": -300,
}
MLP = {"network.actor.type": "mlp", "network.critic.type": "mlp"}


def final_score(config: str, seed: int, directory: Path, **changes: Any) -> float:
    """Mean return of the last policy over fresh episodes."""
    overrides = {"seed": seed, "directory": str(directory), "threads": 1, "logging.tensorboard": False}
    run = Run.create(load_experiment(config, overrides | {"training.eval_frequency": 0} | changes))
    run.train()
    return run.evaluate(EPISODES, seed=seed).mean


@pytest.mark.learning
@pytest.mark.parametrize("config", GATES)
def test_a_network_with_memory_solves_what_needs_it(config: str, tmp_path: Path) -> None:
    scores = [final_score(config, seed, tmp_path) for seed in SEEDS]
    print(f"\n{config}: gate {GATES[config]}, seeds {[round(score, 2) for score in scores]}")
    assert sorted(scores)[len(scores) // 2] >= GATES[config]


@pytest.mark.learning
def test_a_network_without_memory_only_guesses_what_it_saw_long_ago(tmp_path: Path) -> None:
    scores = [final_score("ppo_recall.yaml", seed, tmp_path, **MLP) for seed in SEEDS]
    print(f"\nrecall without memory: {[round(score, 2) for score in scores]}")
    assert max(scores) <= 0.6
