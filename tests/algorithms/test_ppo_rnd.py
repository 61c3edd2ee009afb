"""The bonus of PPO-RND: high for what is new, low for what was seen often."""

from __future__ import annotations

import numpy as np
import torch

from rl4sys.algorithms import PPORND, PPOConfig, PPORNDConfig, run_update

from .problems import fixed_batch, problem


def built(**settings: float) -> PPORND:
    return PPORNDConfig(epochs=1, **settings).build(problem())


def test_what_was_seen_often_is_predicted_better_than_what_is_new() -> None:
    algorithm, batch = built(bonus_lr=0.01), fixed_batch(problem())
    seen = {"observation": torch.from_numpy(batch.observation["observation"]).flatten(0, 1)}
    new = {"observation": seen["observation"] + 3.0}
    before = algorithm.errors(seen).mean().item()
    for _ in range(100):
        run_update(algorithm, batch)
    assert algorithm.errors(seen).mean().item() < 0.2 * before
    assert algorithm.errors(new).mean().item() > 3.0 * algorithm.errors(seen).mean().item()


def test_the_random_network_stays_as_it_is() -> None:
    algorithm = built()
    views = algorithm.novelty.optimizer.parameters.views
    before = {name: view.detach().clone() for name, view in views.items()}
    run_update(algorithm, fixed_batch(problem()))
    for name, view in views.items():
        assert torch.equal(view, before[name]) == name.startswith("random"), name


def test_without_bonus_it_learns_as_ppo_does() -> None:
    ppo = PPOConfig(epochs=1).build(problem())
    plain = PPORNDConfig(epochs=1, bonus=0.0).build(problem())
    curious = PPORNDConfig(epochs=1, bonus=2.0).build(problem())
    first = ppo.train_state.policy_weights().copy()
    assert np.array_equal(first, plain.train_state.policy_weights())
    run_update(ppo, fixed_batch(problem()))
    assert run_update(plain, fixed_batch(problem())).metrics["bonus"] == 0.0
    assert run_update(curious, fixed_batch(problem())).metrics["bonus"] > 0.0
    assert not np.array_equal(ppo.train_state.policy_weights(), first)
    np.testing.assert_allclose(plain.train_state.policy_weights(), ppo.train_state.policy_weights(), atol=1e-6)
    assert not np.array_equal(plain.train_state.policy_weights(), curious.train_state.policy_weights())
