"""Algorithms that choose among candidates."""

from __future__ import annotations

import pytest
from tests.networks.test_candidates import problem

from rl4sys.algorithms import DQNConfig
from rl4sys.networks import UnsuitableNetwork

from .training import DQN, PPO, Settings, experiment, greedy_return

SAC: Settings = {"name": "sac", "lr": 0.005, "gamma": 0.5, "batch_size": 64, "learning_starts": 100}
CANDIDATES = {"actor": {"type": "candidates"}, "critic": {"type": "candidates"}}


@pytest.mark.parametrize(
    ("algorithm", "steps"),
    [(PPO, 4096), (DQN, 2048), (SAC | {"updates_per_step": 0.5}, 800)],
    ids=["ppo", "dqn", "sac"],
)
def test_the_best_candidate_is_found(algorithm: Settings, steps: int) -> None:
    config = experiment(algorithm, "CandidateChoice", steps=steps, env={"most": 4, "features": 2}, network=CANDIDATES)
    # A random choice among one to four finds the best one in half of the steps.
    assert greedy_return(config) > 0.75 * 16


def test_dueling_streams_are_refused() -> None:
    with pytest.raises(UnsuitableNetwork, match="dueling=false"):
        DQNConfig(dueling=True).build(problem())
