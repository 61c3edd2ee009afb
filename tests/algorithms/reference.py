"""The same mathematics once more, in float64 numpy, written apart from the code under test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rl4sys.experience import Array
from rl4sys.weights import Layout

from .networks_of import acting, flat_of

Weights = Mapping[str, Array]
Loss = Callable[[Weights], float]


def named(layout: Layout, flat: Array) -> dict[str, Array]:
    """The tensors of a flat vector by name, in float64."""
    wide = flat.astype(np.float64)
    return {
        name: wide[layout.offset(name) : layout.offset(name) + int(np.prod(shape))].reshape(shape)
        for name, shape in layout.shapes
    }


def network(weights: Weights, body: str, last: str, x: Array) -> Array:
    """A tanh network: hidden layers `body`.0, `body`.1, … and a linear layer `last`."""
    x, number = x.astype(np.float64), 0
    while f"{body}.{number}.weight" in weights:
        x = np.tanh(x @ weights[f"{body}.{number}.weight"] + weights[f"{body}.{number}.bias"])
        number += 1
    return x @ weights[f"{last}.weight"] + weights[f"{last}.bias"]


def gradient(loss: Loss, layout: Layout, flat: Array, size: float = 1e-5) -> Array:
    """The gradient of a loss by central differences: good to about 1e-9 where the loss is smooth."""
    found = np.zeros(len(flat))
    for index in range(len(flat)):
        nudge = np.zeros(len(flat))
        nudge[index] = size
        ahead, behind = (loss(named(layout, flat + sign * nudge)) for sign in (1.0, -1.0))
        found[index] = (ahead - behind) / (2.0 * size)
    return found


def log_softmax(scores: Array) -> Array:
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def values(algorithm: Any, observation: list[list[float]]) -> Array:
    """What the critic of PPO, or the Q-network of DQN (dueling too), says about these observations."""
    weights = named(acting(algorithm).layout, flat_of(algorithm))
    x = np.array(observation)
    if "critic.value.weight" in weights:
        return network(weights, "critic", "critic.value", x)[:, 0]
    scores = network(weights, "actor", "actor.action", x)
    if "value.weight" not in weights:
        return scores
    return network(weights, "actor", "value", x) + scores - scores.mean(axis=1, keepdims=True)
