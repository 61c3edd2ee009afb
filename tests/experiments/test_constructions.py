"""A run builds its algorithm once, and makes no more environments than it needs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from rl4sys.algorithms import ALGORITHMS
from rl4sys.environments.grading import EPISODES
from rl4sys.experiments import ExperimentConfig, Run

from .runs import PPO, small

TO_DESCRIBE = 1
TO_GRADE = 2 + EPISODES
"""One is asked whether it saves itself, one is played in, and each saved episode is resumed in a new one."""
TO_CHECK = 1
"""One shows whether observations lie within their space."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts algorithms and environments from here on."""
    counts: Counter[str] = Counter()
    make, ppo = gymnasium.make, ALGORITHMS.type("ppo")
    build = ppo.build

    def counted_make(*arguments: Any, **settings: Any) -> Any:
        counts["environments"] += 1
        return make(*arguments, **settings)

    def counted_build(config: Any, problem: Any) -> Any:
        counts["algorithms"] += 1
        return build(config, problem)

    monkeypatch.setattr(gymnasium, "make", counted_make)
    monkeypatch.setattr(ppo, "build", counted_build)
    return counts


def config_of(tmp_path: Path) -> ExperimentConfig:
    config = small(PPO, tmp_path, environment__num_envs=4)
    assert config.training.total_timesteps // config.training.eval_frequency > 1
    return config


def test_a_run_builds_one_algorithm_and_the_environments_it_needs(tmp_path: Path, made: Counter[str]) -> None:
    config = config_of(tmp_path)
    Run.create(config).train()
    to_act, to_evaluate = config.environment.num_envs, config.training.num_eval_episodes
    assert made == {"algorithms": 1, "environments": TO_DESCRIBE + TO_GRADE + TO_CHECK + to_act + to_evaluate}


def test_a_resumed_run_builds_one_algorithm_and_grades_nothing(tmp_path: Path, made: Counter[str]) -> None:
    config = config_of(tmp_path)
    run = Run.create(config)
    run.train(stop=lambda: run.steps >= 64)
    made.clear()
    Run.resume(run.directory).train()
    to_act, to_evaluate = config.environment.num_envs, config.training.num_eval_episodes
    assert made == {"algorithms": 1, "environments": TO_DESCRIBE + to_act + to_evaluate}
