"""A chain of states whose best values are known exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from environments.chain_values import chain_values

from .reference import values
from .training import DQN, experiment, trained

pytestmark = pytest.mark.slow

STATES, SMALL, GAMMA = 5, 0.1, 0.9
CHAIN = {**DQN, "gamma": GAMMA, "lr": 0.003, "exploration_fraction": 1.0, "epsilon_end": 0.3}


def relative_error(steps: int, buffer: dict[str, Any] | None = None, **options: Any) -> float:
    """How far the learned values of the states are from the best possible ones, at worst."""
    env = {"n": STATES, "small": SMALL}
    config = experiment({**CHAIN, **options}, "Chain", steps=steps, env=env, buffer=buffer or {})
    found = values(trained(config).algorithm, np.eye(STATES).tolist()).max(axis=1)
    return float(np.max(np.abs(found / chain_values(STATES, SMALL, GAMMA) - 1.0)))


@pytest.mark.parametrize("double", [False, True])
def test_dqn_finds_the_values_of_a_chain(double: bool) -> None:
    assert relative_error(4_000, double=double) < 0.02


def test_a_dueling_network_finds_the_values_of_a_chain() -> None:
    assert relative_error(4_000, dueling=True) < 0.05


def test_longer_returns_find_the_values_of_a_chain() -> None:
    # Windows hold exploring actions too, which off-policy n-step returns do not correct: let the replay forget them.
    assert relative_error(4_000, n_step=3, epsilon_end=0.0, exploration_fraction=0.7, buffer={"size": 1_000}) < 0.05


def test_prioritized_replay_finds_the_values_of_a_chain() -> None:
    assert relative_error(4_000, buffer={"type": "prioritized", "beta_steps": 4_000}) < 0.05
