"""Environments whose values are known: what a network says must be what mathematics says."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rl4sys.experience import Array
from rl4sys.experiments.components import Components
from rl4sys.learning import Learner

from .reference import values
from .training import DQN, PPO, components, experiment, trained

BOTH = pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
GAMMA = 0.5


@cache
def experienced(algorithm: str, name: str) -> tuple[Components, Learner]:
    """A learner after a run, for every test that asks for the same."""
    config = experiment(PPO, name, steps=3072) if algorithm == "ppo" else experiment(DQN, name, steps=2048)
    return components(config), trained(config)


def learned_values(algorithm: str, name: str, observation: list[list[float]]) -> Array:
    """The values after a run; for DQN those of the best actions."""
    found = values(experienced(algorithm, name)[1].algorithm, observation)
    return found if found.ndim == 1 else found.max(axis=1)


@BOTH
def test_a_constant_reward_is_expected(algorithm: str) -> None:
    assert learned_values(algorithm, "ConstantReward", [[1.0]]) == pytest.approx([1.0], abs=0.02)


@BOTH
def test_a_reward_that_is_seen_in_advance_is_expected(algorithm: str) -> None:
    found = learned_values(algorithm, "ObservationReward", [[-1.0], [1.0]])
    assert found == pytest.approx([-1.0, 1.0], abs=0.03)


@BOTH
def test_a_later_reward_is_worth_less(algorithm: str) -> None:
    found = learned_values(algorithm, "TwoStepDiscount", [[0.0], [1.0]])
    assert found == pytest.approx([GAMMA, 1.0], abs=0.03)


def test_every_action_of_dqn_is_worth_what_it_earns() -> None:
    _, learner = experienced("dqn", "ActionReward")
    assert values(learner.algorithm, [[1.0]])[0] == pytest.approx([-1.0, 1.0], abs=0.03)


def test_every_action_of_dqn_is_worth_what_it_earns_there() -> None:
    _, learner = experienced("dqn", "ObservationActionReward")
    found = values(learner.algorithm, [[-1.0], [1.0]])
    np.testing.assert_allclose(found, [[1.0, -1.0], [-1.0, 1.0]], atol=0.05)


def test_the_critic_of_ppo_expects_what_the_policy_earns() -> None:
    found = learned_values("ppo", "ObservationActionReward", [[-1.0], [1.0]])
    assert found == pytest.approx([1.0, 1.0], abs=0.1)


@BOTH
@pytest.mark.parametrize("name", ["ActionReward", "ObservationActionReward"])
def test_the_rewarded_action_is_chosen(algorithm: str, name: str) -> None:
    parts, learner = experienced(algorithm, name)
    assert parts.evaluate(learner, 16, parts.seeds).returns == (1.0,) * 16
