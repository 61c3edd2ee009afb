"""Gates for what world models predict, after minutes of training on random actions (`make test-learning`)."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.dynamics.world_model_gate import quality, trained

from rl4sys.experiments import Run, load_experiment

from .test_published_scores import Gate, interquartile_mean


@pytest.mark.learning
def test_a_world_model_predicts_a_pendulum() -> None:
    found = quality(trained("Pendulum-v1", 5_000, 600), "Pendulum-v1")
    print(f"\nPendulum-v1 after 600 updates: {found}")
    assert found.reward_r2 >= 0.95
    assert found.open_loop <= 0.2
    assert found.return_correlation >= 0.9


@pytest.mark.learning
def test_a_world_model_predicts_when_a_pole_falls() -> None:
    found = [quality(trained("CartPole-v1", 5_000, 600, seed), "CartPole-v1", seed + 100) for seed in (0, 1, 2)]
    areas = [each.continue_auc for each in found]
    print(f"\nCartPole-v1 after 600 updates, area under the curve of the continue head: {areas}")
    assert np.mean(areas) >= 0.97


GATES = [
    Gate("dreamer_Pendulum-v1.yaml", -250, (1, 2, 3)),
    Gate("dreamer_CartPole-v1.yaml", 400, (1, 2, 3)),
    Gate("dreamer_dm_control-cartpole-swingup.yaml", 500, (1, 2, 3)),
    Gate("planet_Pendulum-v1.yaml", -350, (1, 2, 3)),
]
RECALL = pytest.param(
    Gate("dreamer_recall.yaml", 0.95, (1, 2, 3)),
    marks=pytest.mark.xfail(reason="Missed by seed 3 so far: 1.0, 1.0 and 0.44 (docs/algorithms/dreamer.md)"),
)


@pytest.mark.learning
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("gate", [*GATES, RECALL], ids=lambda gate: gate.config.removesuffix(".yaml"))
def test_a_world_model_trains_a_policy(gate: Gate, tmp_path: Path) -> None:
    scores = [_last_two_evaluations(gate.config, seed, tmp_path) for seed in gate.seeds]
    middle = interquartile_mean(scores)
    print(f"\n{gate.config}: IQM {middle:.2f}, gate {gate.score}, seeds {[round(score, 2) for score in scores]}")
    assert middle >= gate.score


def _last_two_evaluations(config: str, seed: int, directory: Path) -> float:
    """The mean return of the last two evaluations: one alone varies, because every update changes the policy."""
    overrides = {"seed": seed, "directory": str(directory), "threads": 1, "logging.tensorboard": False}
    run = Run.create(load_experiment(config, overrides))
    run.train()
    lines = map(json.loads, run.directory.metrics.read_text().splitlines())
    returns = [line["metrics"]["evaluation/return"] for line in lines if "evaluation/return" in line["metrics"]]
    return float(np.mean(returns[-2:]))
