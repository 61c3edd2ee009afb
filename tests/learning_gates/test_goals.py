"""Learning gate for hindsight replay, on a task whose goal random actions rarely reach (`make test-learning`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl4sys.experiments import Run, load_experiment

SEEDS = (1, 2, 3)
EPISODES = 100
WORST = -50.0
"""The return of an episode that never comes near its goal."""
REACHED, MISSED = -20.0, -40.0


def score(algorithm: str, buffer: str, seed: int, directory: Path) -> float:
    """Mean return of the last policy over fresh episodes."""
    overrides = {
        "seed": seed,
        "directory": str(directory),
        "threads": 1,
        "buffer": {"type": buffer},
        "environment.kwargs": {"dimensions": 4},
        "training.total_timesteps": 6_000,
        "training.eval_frequency": 0,
        "logging.tensorboard": False,
    }
    run = Run.create(load_experiment(f"{algorithm}_rl4sys-PointReach-v0.yaml", overrides))
    run.train()
    return run.evaluate(EPISODES, seed=seed).mean


@pytest.mark.learning
@pytest.mark.parametrize("algorithm", ["sac", "ddpg"])
def test_goals_are_reached_only_with_hindsight(algorithm: str, tmp_path: Path) -> None:
    with_hindsight = [score(algorithm, "hindsight", seed, tmp_path) for seed in SEEDS]
    without = [score(algorithm, "uniform", seed, tmp_path) for seed in SEEDS]
    print(f"\n{algorithm}: with hindsight {with_hindsight}, without {without}; a goal never reached is {WORST}")
    assert min(with_hindsight) >= REACHED
    assert max(without) <= MISSED
