from __future__ import annotations

from typing import Any

import pytest
import torch

from algorithms.problems import problem
from rl4sys.algorithms import AlgorithmConfig, Problem, Update, run_update
from rl4sys.config import ConfigError
from rl4sys.learning import LearnerAssembly
from rl4sys.networks import NetworksConfig
from rl4sys.replay import OnceFresh, TrajectoryConfig
from rl4sys.seeding import Seeds

from .fakes import RecordingAlgorithm


class EarlierConfig(AlgorithmConfig):
    """An algorithm written for version 0.1."""

    buffers = ("trajectory",)

    def build(self, problem: Problem) -> Any:
        return object()

    def pace(self, buffer_size: int) -> OnceFresh:
        return OnceFresh(buffer_size, 0)


def test_an_algorithm_without_a_train_state_is_refused_with_advice() -> None:
    asked = problem()
    assembly = LearnerAssembly(EarlierConfig(), NetworksConfig(), TrajectoryConfig(), Seeds(0), asked.device)
    with pytest.raises(ConfigError, match=r"object has no train_state.*docs/own_algorithm\.md"):
        assembly.build_algorithm(asked.observation, asked.action)


def test_a_metric_must_be_one_number() -> None:
    algorithm = RecordingAlgorithm()
    algorithm.update = lambda batch: Update({"q": torch.zeros(3)}, {})  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=r"Metric 'q' has shape \(3,\); report one number"):
        run_update(algorithm, None)
