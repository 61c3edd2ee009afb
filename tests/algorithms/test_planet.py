"""PlaNet with the latents of its paper."""

from __future__ import annotations

import numpy as np
import pytest

from rl4sys.algorithms import PlaNetConfig
from rl4sys.dynamics import RSSMConfig
from rl4sys.policy import NumpyPolicy

from .problems import problem
from .test_dreamer import BOX, sequences

SEARCH = {"horizon": 3, "iterations": 2, "candidates": 12, "elites": 3}


@pytest.mark.parametrize("latents", ["categorical", "gaussian"])
def test_it_learns_a_batch_and_plans_with_the_model(latents: str) -> None:
    dynamics = RSSMConfig.model_validate({"latents": latents, "deter": 16, "hidden": 8, "groups": 4, "classes": 4})
    agent = PlaNetConfig(
        size="pico",
        dynamics=dynamics,
        batch_size=3,
        sequence_length=8,
        warmup_steps=0,
        lr=3e-3,
        free_nats=3.0,
        **SEARCH,
    ).build(problem(BOX))
    losses = [float(agent.update(sequences()).metrics["loss"]) for _ in range(40)]
    assert losses[-1] < 0.8 * losses[0]
    policy = NumpyPolicy(agent.policies.exploit, agent.train_state.policy_weights())
    noise = np.random.default_rng(0).random((2, policy.noise_size)).astype(np.float32)
    decision = policy.act({"observation": np.ones((2, 3), np.float32)}, noise, policy.initial_carry(2))
    assert np.abs(decision.action).max() <= 2.0
    assert decision.carry["rssm.stoch"].shape == (2, 4 if latents == "gaussian" else 16)
