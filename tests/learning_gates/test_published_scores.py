"""Learning gates: tuned configs reach published scores, in minutes on two cores (`make test-learning`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl4sys.experiments import Run, load_experiment

EPISODES = 100


@dataclass(frozen=True)
class Gate:
    config: str
    score: float
    seeds: tuple[int, ...]
    every_seed: bool = False
    """Whether each seed must pass, rather than the interquartile mean over seeds."""


GATES = [
    Gate("ppo_CartPole-v1.yaml", 475, (1, 2, 3, 4, 5), every_seed=True),
    Gate("ppo_Pendulum-v1.yaml", -250, (1, 2, 3)),
    Gate("dqn_CartPole-v1.yaml", 450, (1, 2, 3, 4, 5)),
    Gate("dqn_MountainCar-v0.yaml", -130, (1, 2, 3)),
    Gate("ppo_LunarLander-v3.yaml", 200, (1, 2, 3)),
]


@pytest.mark.learning
@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.config.removesuffix(".yaml"))
def test_a_tuned_config_reaches_the_published_score(gate: Gate, tmp_path: Path) -> None:
    scores = [final_score(gate.config, seed, tmp_path) for seed in gate.seeds]
    middle = interquartile_mean(scores)
    print(f"\n{gate.config}: IQM {middle:.1f}, gate {gate.score}, seeds {[round(score, 1) for score in scores]}")
    assert (min(scores) if gate.every_seed else middle) >= gate.score


def final_score(config: str, seed: int, directory: Path, changes: Mapping[str, Any] | None = None) -> float:
    """Mean return of the last policy (not the best one) over fresh episodes."""
    overrides = {
        "seed": seed,
        "directory": str(directory),
        "threads": 1,
        "logging.tensorboard": False,
        "training.eval_frequency": 0,
        **(changes or {}),
    }
    run = Run.create(load_experiment(config, overrides))
    run.train()
    return run.evaluate(EPISODES, seed=seed).mean


def interquartile_mean(scores: list[float]) -> float:
    ordered = np.sort(scores)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())
