from __future__ import annotations

from typing import Any

import pytest

from .training import DQN, PPO, experiment, greedy_return

KINDS = ("discrete", "multi_discrete", "box", "mixed")


@pytest.mark.parametrize("action", KINDS)
def test_ppo_learns_to_copy_the_observation(action: str) -> None:
    config = experiment(PPO, "Identity", steps=4096, env={"action": action})
    # A policy that ignores the observation gets 0.55 · 8 in the box, and a third or half of 8 elsewhere.
    assert greedy_return(config) > 0.85 * 8


@pytest.mark.parametrize("action", ["discrete", "multi_discrete"])
def test_ppo_learns_among_the_allowed_choices(action: str) -> None:
    config = experiment(PPO, "Identity", steps=4096, env={"action": action, "masked": True})
    assert greedy_return(config) > 0.95 * 8


@pytest.mark.parametrize("action", KINDS)
def test_ppo_finds_the_best_arm_of_a_bandit(action: str) -> None:
    config = experiment(PPO, "Bandit", steps=4096, env={"action": action})
    assert greedy_return(config) > 0.85


@pytest.mark.parametrize("masked", [False, True])
def test_dqn_learns_to_copy_the_observation(masked: bool) -> None:
    config = experiment(DQN, "Identity", steps=1536, env={"masked": masked})
    assert greedy_return(config) > 0.95 * 8


@pytest.mark.parametrize("option", [{}, {"double": False}, {"dueling": True}, {"n_step": 3}], ids=str)
def test_dqn_finds_the_best_arm_of_a_bandit(option: dict[str, Any]) -> None:
    config = experiment({**DQN, **option}, "Bandit", steps=768)
    assert greedy_return(config) == 1.0


@pytest.mark.parametrize("algorithm", [PPO, DQN], ids=["ppo", "dqn"])
def test_normalized_observations_and_rewards_still_lead_to_the_goal(algorithm: dict[str, Any]) -> None:
    normalized = {"normalize_obs": True, "normalize_reward": True}
    config = experiment(algorithm, "Identity", steps=2048, environment=normalized)
    assert greedy_return(config) > 0.95 * 8
