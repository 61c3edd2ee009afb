"""Small policies for tests."""

from functools import cache

import numpy as np

from rl4sys.experience import Array, ArraySpec, StreamKey
from rl4sys.policy import (
    MASK,
    ActionSpec,
    DiscreteAction,
    Head,
    KeyedNoise,
    NumpyPolicy,
    PolicySpec,
    Program,
    ProgramBuilder,
    layout_of,
)


def direct(action: ActionSpec, width: int, head: Head) -> PolicySpec:
    """A policy whose head reads the observation `scores` directly, and `action_mask` if the head has a mask."""
    masks = () if head.mask is None else (ArraySpec(MASK, "bool", (width,)),)
    return PolicySpec(action, Program((ArraySpec("scores", "float32", (width,)), *masks), (), ()), head)


def mlp(choices: int = 4) -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("state", "float32", (3,)),))
    hidden = builder.activation(builder.linear("state", 5, "actor.0"), "tanh")
    logits = builder.linear(hidden, choices, "actor.action")
    return PolicySpec(DiscreteAction(choices), builder.program(), Head("categorical", (logits,)))


def recurrent() -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("state", "float32", (3,)),))
    hidden = builder.lstm(builder.gru("state", 4, "first"), 5, "second")
    logits = builder.linear(hidden, 2, "actor.action")
    return PolicySpec(DiscreteAction(2), builder.program(), Head("categorical", (logits,)))


def weights_for(spec: PolicySpec, seed: int = 0) -> Array:
    size = layout_of(spec.program).size
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


def noise_for(policy: NumpyPolicy, rows: int) -> Array:
    return _noise(rows, policy.noise_size)


@cache
def _noise(rows: int, size: int) -> Array:
    return KeyedNoise(0, [StreamKey("test", lane=lane) for lane in range(rows)], size).at(0)
