"""Looks into what an algorithm trains."""

from __future__ import annotations

from typing import Any

from rl4sys.experience import Array
from rl4sys.networks import Parameters


def acting(algorithm: Any) -> Parameters:
    """The parameters of the network that acts, and of those trained with it."""
    return next(iter(algorithm.train_state.optimizers.values())).parameters


def flat_of(algorithm: Any, name: str | None = None) -> Array:
    """A copy of the flat parameters of a network or target (`critics.target`); of the one that acts by default."""
    parameters = acting(algorithm) if name is None else dict(algorithm.train_state.parameters())[name]
    return parameters.flat.numpy().copy()
