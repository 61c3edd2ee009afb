"""Small worlds whose answers are known, for soft Q-learning."""

from __future__ import annotations

import numpy as np
import pytest

from rl4sys.experience import Array
from rl4sys.learning import Learner

from .test_sac_td3_ddpg_probes import ALPHA, BOX, COMMON, GAMMA, SMALL, STATES, q, soft_chain_values
from .training import Settings, experiment, greedy_return, trained

pytestmark = pytest.mark.slow

SCALE = 5.0
PARTICLES: Settings = {"value_samples": 16, "fixed_particles": 8, "updated_particles": 8, "ensemble": 1}
PACE: Settings = {"updates_per_step": 0.5, "critic_lr": 0.01}
SQL: Settings = {**COMMON, **PARTICLES, **PACE, "name": "sql", "reward_scale": SCALE}
WITHOUT_CHOICE = [
    ("ConstantReward", [[1.0]], [1.0]),
    ("ObservationReward", [[-1.0], [1.0]], [-1.0, 1.0]),
    # Half of what the last step gives, and of the entropy of its action, in which all are alike.
    ("TwoStepDiscount", [[0.0], [1.0]], [0.5 * (1.0 + np.log(2.0) / SCALE), 1.0]),
]


def soft_values(learner: Learner, observation: Array, scale: float) -> Array:
    """α log ∫ exp Q da by the midpoint rule, in units of reward."""
    action = (np.arange(400)[:, None] + 0.5) / 200.0 - 1.0
    found = [q(learner, np.repeat(row[None], len(action), 0).tolist(), action) for row in observation]
    return np.asarray(np.log(np.exp(np.array(found)).mean(axis=1) * 2.0) / scale)


def test_it_learns_to_copy_the_observation() -> None:
    # A policy that ignores the observation gets 0.55 · 8.
    assert greedy_return(experiment(SQL, "Identity", steps=1_024, env=BOX)) > 0.85 * 8


def test_it_finds_the_best_arm_of_a_bandit() -> None:
    assert greedy_return(experiment(SQL, "Bandit", steps=1_024, env=BOX)) > 0.85


@pytest.mark.slow
def test_it_finds_what_each_observation_asks_for() -> None:
    assert greedy_return(experiment(SQL, "ObservationActionReward", steps=1_536, env=BOX)) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize(("name", "observation", "expected"), WITHOUT_CHOICE)
def test_values_of_worlds_without_a_choice_are_found(
    name: str, observation: list[list[float]], expected: list[float]
) -> None:
    learner = trained(experiment(SQL, name, steps=1_024, env=BOX))
    found = q(learner, observation, np.zeros((len(observation), 1))) / SCALE
    np.testing.assert_allclose(found, expected, atol=0.05)


@pytest.mark.slow
def test_normalized_and_prioritized_experience_leads_to_the_goal_too() -> None:
    normalized = {"normalize_obs": True, "normalize_reward": True}
    buffer = {"type": "prioritized", "beta_steps": 2_000}
    config = experiment(SQL, "Identity", steps=1_536, env=BOX, environment=normalized, buffer=buffer)
    assert greedy_return(config) > 0.8 * 8


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "expected"), [("truncated", 10.0), ("terminated", 1.0)])
def test_values_bootstrap_after_a_truncation_and_not_after_a_termination(ending: str, expected: float) -> None:
    fast = {**SQL, "gamma": 0.9, "polyak": 0.1, "batch_size": 32}
    env = {"horizon": 1, "ending": ending}
    learner = trained(experiment(fast, "Truncation", steps=2_000, env=env | BOX))
    found = q(learner, [[1.0]] * 5, np.linspace(-1.0, 1.0, 5)[:, None]) / SCALE
    # The entropy of an action in which all are alike, log 2, is earned in each step that follows.
    entropy = 9.0 * np.log(2.0) / SCALE if ending == "truncated" else 0.0
    assert found == pytest.approx(np.full(5, expected + entropy), rel=0.05)


@pytest.mark.slow
def test_it_finds_the_soft_values_of_a_chain() -> None:
    # Half of the actions walk left, half right, so that the values are those of two choices.
    settings = {**SQL, "gamma": GAMMA, "reward_scale": 1.0 / ALPHA, "value_samples": 64, "critic_lr": 0.003}
    wide, env = {"critic": {"hidden_dims": [64, 64]}}, {"n": STATES, "small": SMALL}
    learner = trained(experiment(settings, "Chain", steps=6_000, env=env | BOX, network=wide))
    np.testing.assert_allclose(soft_values(learner, np.eye(STATES), 1.0 / ALPHA), soft_chain_values(), rtol=0.02)
