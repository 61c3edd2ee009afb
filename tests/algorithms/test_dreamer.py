"""Dreamer: its losses against plain formulas, exact states, and small things that it must learn."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from rl4sys.algorithms import Dreamer, DreamerConfig
from rl4sys.algorithms.dreamer import Dream, return_scale, update_scale
from rl4sys.dynamics import State, evidence
from rl4sys.experience import Sequences
from rl4sys.policy import BoxAction, DiscreteAction, NumpyPolicy

from .problems import problem

BOX = BoxAction((-2.0,), (2.0,))


def dreamer(action: Any = BOX, **config: Any) -> Dreamer:
    settings = {"size": "pico", "batch_size": 3, "sequence_length": 8, "horizon": 4, "warmup_steps": 0} | config
    return DreamerConfig(**settings).build(problem(action))


def sequences(action: Any = BOX, rows: int = 3, length: int = 8, seed: int = 0) -> Sequences:
    rng = np.random.default_rng(seed)
    shape = (rows, length)
    chosen = rng.integers(0, action.n, shape) if isinstance(action, DiscreteAction) else rng.normal(size=(*shape, 1))
    is_first = np.zeros(shape, np.bool_)
    is_first[:, 5] = True
    acted = np.ones(shape, np.bool_)
    acted[:, 4] = False
    return Sequences(
        {"observation": rng.normal(size=(*shape, 3)).astype(np.float32)},
        chosen if isinstance(action, DiscreteAction) else chosen.astype(np.float32),
        rng.normal(size=shape).astype(np.float32),
        np.where(np.arange(length) == 3, 0.0, 1.0).astype(np.float32) * np.ones(shape, np.float32),
        acted,
        is_first,
        np.zeros(shape, np.int32),
        {},
        {},
        (),
    )


def test_rewards_and_values_are_exactly_zero_at_first() -> None:
    agent = dreamer()
    dream = agent.imagine(State(torch.randn(5, 128), torch.zeros(5, 64)))
    assert not dream.reward.any()
    assert not dream.value.any()


def test_the_model_loss_equals_plain_formulas() -> None:
    agent, batch = dreamer(free_nats=0.3), sequences()
    data = evidence(batch, BOX, 1, torch.device("cpu"))
    uniform = torch.rand(3, 8, 8)
    found = agent.model.understand(agent.views, data, uniform)
    weight = data.weight.double().numpy()
    posterior, prior = _distributions(agent, data, uniform)
    divergence = (posterior * np.log(posterior / prior)).sum((-2, -1))
    expected = (np.maximum(divergence, 0.3) * weight).sum() / weight.sum()
    assert found.metrics["dynamics_loss"].item() == pytest.approx(expected, rel=1e-5)
    assert found.metrics["representation_loss"].item() == pytest.approx(expected, rel=1e-5)
    assert found.metrics["reward_loss"].item() == pytest.approx(np.log(255), rel=1e-5)


def _distributions(agent: Dreamer, data: Any, uniform: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    with torch.no_grad():
        embedding = agent.model.encoder(agent.views, {"observation": data.observation["observation"].flatten(0, 1)})
        rssm = agent.model.rssm
        state, posterior = rssm.observe(
            agent.views, embedding.view(3, 8, -1), data.previous_action, data.is_first, uniform
        )
        prior = rssm.prior(agent.views, state.deter.flatten(0, 1)).view(posterior.shape)
    return posterior.double().numpy(), prior.double().numpy()


def test_the_representation_loss_does_not_train_the_prior() -> None:
    agent = dreamer(free_nats=0.0, dynamics_scale=0.0, representation_scale=1.0)
    assert not _prior_gradient(agent).any()


def test_the_dynamics_loss_trains_the_prior() -> None:
    agent = dreamer(free_nats=0.0, dynamics_scale=1.0, representation_scale=0.0)
    assert _prior_gradient(agent).any()


def test_divergences_below_the_free_nats_train_nothing() -> None:
    assert not _prior_gradient(dreamer(free_nats=1e3, dynamics_scale=1.0)).any()


def _prior_gradient(agent: Dreamer) -> torch.Tensor:
    data = evidence(sequences(), BOX, 1, torch.device("cpu"))
    agent.model.understand(agent.views, data, torch.rand(3, 8, 8)).loss.backward()
    gradient = agent.views["rssm.prior.out.weight"].grad
    assert gradient is not None
    return gradient


@pytest.mark.parametrize("action", [BOX, DiscreteAction(3)], ids=["box", "discrete"])
def test_the_actor_learns_by_reinforce(action: Any) -> None:
    agent = dreamer(action, entropy_coef=0.0)
    dream = agent.imagine(State(torch.randn(6, 128), torch.zeros(6, 64)))
    returns, weight = torch.randn(dream.returns.shape), torch.rand(dream.weight.shape)
    dream = dream._replace(returns=returns, weight=weight)
    loss, _ = agent.actor_loss(dream)
    log_prob = _plain_log_prob(agent, dream)
    advantage = (returns - dream.value[:-1]).flatten()
    assert loss.item() == pytest.approx(-(weight.flatten() * log_prob * advantage).mean().item(), rel=1e-4, abs=1e-6)


def _plain_log_prob(agent: Dreamer, dream: Dream) -> torch.Tensor:
    hidden = agent.actor(agent.views, dream.feature)
    if agent.is_discrete:
        return torch.distributions.OneHotCategorical(agent._choices(hidden).squeeze(1)).log_prob(dream.action)
    return torch.distributions.Normal(*agent._gaussian(hidden)).log_prob(dream.action).sum(-1)


def test_advantages_are_divided_by_the_range_of_returns_if_it_exceeds_one() -> None:
    scale = torch.zeros(3, dtype=torch.float64)
    assert return_scale(scale).item() == 1.0
    rng, low, high, weight = np.random.default_rng(0), 0.0, 0.0, 0.0
    for _ in range(5):
        returns = rng.normal(size=1000) * 10
        update_scale(scale, torch.from_numpy(returns))
        ends = np.quantile(returns, [0.05, 0.95])
        low, high, weight = 0.99 * low + 0.01 * ends[0], 0.99 * high + 0.01 * ends[1], 0.99 * weight + 0.01
    assert return_scale(scale).item() == pytest.approx((high - low) / weight, rel=1e-6)


@pytest.mark.parametrize("action", [BOX, DiscreteAction(3)], ids=["box", "discrete"])
def test_a_saved_state_continues_exactly(action: Any) -> None:
    agent, twin = dreamer(action), dreamer(action)
    for seed in range(3):
        agent.update(sequences(action, seed=seed))
    twin.train_state.restore(agent.train_state.state())
    metrics = [a.update(sequences(action, seed=9)).metrics for a in (agent, twin)]
    assert {name: float(value) for name, value in metrics[0].items()} == {n: float(v) for n, v in metrics[1].items()}
    assert torch.equal(agent.optimizer.parameters.flat, twin.optimizer.parameters.flat)


@pytest.mark.parametrize("action", [BOX, DiscreteAction(3)], ids=["box", "discrete"])
def test_the_policy_filters_as_training_does(action: Any) -> None:
    """Twenty decisions of the numpy runtime, and one scan over what they saw: equal draws, equal memory."""
    agent, rng, steps = dreamer(action), np.random.default_rng(3), 20
    with torch.no_grad():
        flat = agent.optimizer.parameters.flat
        flat.add_(0.05 * torch.randn(flat.shape, generator=torch.Generator().manual_seed(0)))
    policy = NumpyPolicy(agent.policies.explore, agent.train_state.policy_weights())
    seen = rng.normal(size=(2, steps, 3)).astype(np.float32)
    noise = rng.random((2, steps, policy.noise_size)).astype(np.float32)
    carry, memories = policy.initial_carry(2), []
    for step in range(steps):
        memories.append(carry)
        decision = policy.act({"observation": seen[:, step]}, noise[:, step], carry)
        carry = {name: array.copy() for name, array in decision.carry.items()}
    memories.append(carry)
    previous = torch.from_numpy(np.stack([memory["rssm.previous_action"] for memory in memories[:-1]], 1))
    rssm, is_first = agent.model.rssm, torch.zeros(2, steps, dtype=torch.bool)
    with torch.no_grad():
        embedding = agent.model.encoder(agent.views, {"observation": torch.from_numpy(seen).flatten(0, 1)})
        chance = torch.from_numpy(noise[..., : rssm.groups])
        state, _ = rssm.observe(agent.views, embedding.view(2, steps, -1), previous, is_first, chance)
    for name, found in (("rssm.deter", state.deter), ("rssm.stoch", state.stoch)):
        expected = np.stack([memory[name] for memory in memories[1:]], 1)
        assert found.numpy() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("action", [BOX, DiscreteAction(3)], ids=["box", "discrete"])
def test_weights_are_counted_before_they_are_made(action: Any) -> None:
    agent = dreamer(action)
    made = agent.optimizer.parameters.flat.numel() + agent.slow_critic.parameters.flat.numel()
    assert agent.config.own_weights(agent.problem.observation, action) == made


def test_a_forecast_follows_the_actions() -> None:
    agent, batch = dreamer(), sequences()
    found = agent.forecast(batch, 3)
    assert found.observation.shape == (1, 3, 5, 3)
    assert found.reward.shape == (1, 3, 5)
    other = agent.forecast(dataclasses.replace(batch, action=-batch.action), 3)
    assert not np.array_equal(other.observation, found.observation)


@pytest.mark.slow
def test_one_batch_is_learned_by_heart() -> None:
    agent, batch = dreamer(lr=3e-3), sequences()
    first = float(agent.update(batch).metrics["reconstruction_loss"])
    for _ in range(150):
        last = float(agent.update(batch).metrics["reconstruction_loss"])
    assert last < first / 20
