"""Actors, critics and targets in float64 numpy, for comparison with SAC, TD3 and DDPG."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from rl4sys.algorithms import ALGORITHMS, Problem, run_update
from rl4sys.experience import Array, Transitions
from rl4sys.networks import Network
from rl4sys.policy import ActionSpec, BoxAction
from rl4sys.weights import Layout

from .networks_of import flat_of
from .problems import problem, transitions
from .reference import Weights, gradient, named, network

ASYMMETRIC = BoxAction((-1.0, -0.5), (3.0, 0.25))
ROWS = 12


def built(name: str, action: ActionSpec = ASYMMETRIC, *, masked: bool = False, **config: Any) -> Any:
    """The algorithm of this name for a small problem, with steps too small to move anything unless told otherwise."""
    settings = {"lr": 1e-12, "critic_lr": 1e-12, "gamma": 0.9, "learning_starts": 0} | config
    return ALGORITHMS.parse({"name": name, **settings}).build(asked(action, masked=masked))


def asked(action: ActionSpec = ASYMMETRIC, *, masked: bool = False) -> Problem:
    return problem(action, masked=masked)


def transition_batch(action: ActionSpec = ASYMMETRIC, *, masked: bool = False) -> Transitions:
    """A batch whose continuous actions reach beyond the bounds now and then."""
    return transitions(asked(action, masked=masked), ROWS)


def scaled(action: Array, box: BoxAction = ASYMMETRIC) -> Array:
    """Actions in [−1, 1]."""
    low, high = np.array(box.low), np.array(box.high)
    return np.clip(2.0 * (action - low) / (high - low) - 1.0, -1.0, 1.0)


def q_values(layout: Layout, flat: Array, observation: Array, action: Array | None = None) -> Array:
    """The values [n, B] of all critics, or [n, B, k] for critics of all discrete actions."""
    x = observation if action is None else np.concatenate([observation, action], axis=1)
    stacked = named(layout, flat)
    members = len(stacked["critic.value.weight"])
    found = np.stack([network(member(stacked, m), "critic", "critic.value", x) for m in range(members)])
    return found if action is None else found[..., 0]


def member(stacked: Weights, number: int) -> dict[str, Array]:
    return {name: tensor[number] for name, tensor in stacked.items()}


def with_other_targets(network: Network) -> Array:
    """Moves the target network away from the network; returns its flat parameters."""
    rng, flat = np.random.default_rng(5), network.target_parameters.flat
    flat.add_(torch.from_numpy(rng.normal(0, 0.3, len(flat)).astype(np.float32)))
    return flat.numpy().copy()


def ending(batch: Transitions, discount: float) -> Transitions:
    return replace(batch, discount=np.full(len(batch), discount, np.float32))


def require_gradient_of_critics(algorithm: Any, batch: Transitions, target: Array) -> None:
    """One update must leave the gradient of the weighted squared errors to these targets, by central differences."""
    layout, flat = algorithm.critics.optimizer.parameters.layout, flat_of(algorithm, "critics")

    def errors(weights: Weights) -> Array:
        joined = np.concatenate([t.ravel() for t in weights.values()])
        return q_values(layout, joined, batch.observation["observation"], scaled(batch.action)) - target

    _, feedback = run_update(algorithm, batch)
    expected = gradient(lambda w: float((0.5 * errors(w) ** 2 * batch.weight).mean(axis=1).sum()), layout, flat)
    np.testing.assert_allclose(algorithm.critics.optimizer.parameters.gradient.numpy(), expected, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(feedback["priority"], np.abs(errors(named(layout, flat))).mean(axis=0), atol=1e-5)
