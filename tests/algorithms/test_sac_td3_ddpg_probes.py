"""Small worlds whose answers are known, for the algorithms with an actor, critics and a replay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl4sys.experience import Array
from rl4sys.learning import Learner

from .actor_critic import q_values
from .networks_of import flat_of
from .training import Settings, experiment, greedy_return, trained

COMMON: Settings = {
    "gamma": 0.5,
    "lr": 0.005,
    "batch_size": 64,
    "train_frequency": 8,
    "updates_per_step": 0.25,
    "learning_starts": 200,
    "polyak": 0.05,
}
SAC: Settings = {**COMMON, "name": "sac", "temperature": 0.05}
TD3: Settings = {**COMMON, "name": "td3", "exploration_std": 0.3}
DDPG: Settings = {**COMMON, "name": "ddpg", "exploration_std": 0.3}
ALL = pytest.mark.parametrize("algorithm", [SAC, TD3, DDPG], ids=["sac", "td3", "ddpg"])
BOX = {"action": "box"}


def q(learner: Learner, observation: list[list[float]], action: Array | None = None) -> Array:
    """The mean over critics of their values."""
    critics: Any = learner.algorithm.critics  # type: ignore[attr-defined]
    layout, flat = critics.optimizer.parameters.layout, flat_of(learner.algorithm, "critics")
    return q_values(layout, flat, np.array(observation), action).mean(axis=0)


@ALL
def test_it_learns_to_copy_the_observation(algorithm: Settings) -> None:
    # A policy that ignores the observation gets 0.55 · 8.
    assert greedy_return(experiment(algorithm, "Identity", steps=2_048, env=BOX)) > 0.85 * 8


@ALL
def test_it_finds_the_best_arm_of_a_bandit(algorithm: Settings) -> None:
    # A slow actor: one that runs off to a bound before the critic knows better returns late.
    careful = {**algorithm, "lr": 0.002, "critic_lr": 0.01, "updates_per_step": 0.5}
    assert greedy_return(experiment(careful, "Bandit", steps=1_536, env=BOX)) > 0.85


@pytest.mark.parametrize("masked", [False, True])
def test_discrete_sac_learns_to_copy_the_observation(masked: bool) -> None:
    config = experiment(SAC, "Identity", steps=1_536, env={"masked": masked})
    assert greedy_return(config) > 0.95 * 8


@pytest.mark.slow
@pytest.mark.parametrize(
    "option",
    [
        {"temperature": "auto"},
        {"n_step": 3},
        {"ensemble": 4, "target_subset": 2, "actor_objective": "mean"},
        {"max_grad_norm": 1.0},
    ],
    ids=str,
)
def test_the_options_of_sac_lead_to_the_goal_too(option: Settings) -> None:
    assert greedy_return(experiment({**SAC, **option}, "Identity", steps=2_560, env=BOX)) > 0.8 * 8


@pytest.mark.slow
@ALL
def test_normalized_and_prioritized_experience_leads_to_the_goal_too(algorithm: Settings) -> None:
    normalized = {"normalize_obs": True, "normalize_reward": True}
    buffer = {"type": "prioritized", "beta_steps": 2_000}
    config = experiment(algorithm, "Identity", steps=2_560, env=BOX, environment=normalized, buffer=buffer)
    assert greedy_return(config) > 0.8 * 8


@pytest.mark.slow
@ALL
@pytest.mark.parametrize(("ending", "expected"), [("truncated", 10.0), ("terminated", 1.0)])
def test_values_bootstrap_after_a_truncation_and_not_after_a_termination(
    algorithm: Settings, ending: str, expected: float
) -> None:
    fast = {**algorithm, "gamma": 0.9, "polyak": 0.1, "lr": 0.01, "updates_per_step": 0.5, "batch_size": 32}
    if algorithm["name"] == "sac":
        fast["temperature"] = 0.0
    env = {"horizon": 1, "ending": ending}
    learner = trained(experiment(fast, "Truncation", steps=2_000, env=env | BOX))
    found = q(learner, [[1.0]] * 5, np.linspace(-1.0, 1.0, 5)[:, None])
    assert found == pytest.approx(np.full(5, expected), rel=0.05)


STATES, SMALL, GAMMA, ALPHA = 5, 0.1, 0.9, 0.1


def soft_chain_values() -> Array:
    """Soft values of the chain by iteration: V = α log Σ exp(Q / α)."""
    value = np.zeros(STATES)
    for _ in range(500):
        left = np.concatenate([[SMALL], GAMMA * value[:-1]])
        right = np.concatenate([GAMMA * value[1:], [1.0]])
        value = ALPHA * np.log(np.exp(left / ALPHA) + np.exp(right / ALPHA))
    return value


@pytest.mark.slow
def test_discrete_sac_finds_the_soft_values_of_a_chain() -> None:
    settings = {**SAC, "gamma": GAMMA, "temperature": ALPHA, "updates_per_step": 0.5, "lr": 0.003}
    learner = trained(experiment(settings, "Chain", steps=2_500, env={"n": STATES, "small": SMALL}))
    found = ALPHA * np.log(np.exp(q(learner, np.eye(STATES).tolist()) / ALPHA).sum(axis=1))
    np.testing.assert_allclose(found, soft_chain_values(), rtol=0.02)
