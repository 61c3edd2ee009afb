"""Actions as networks see them: one-hot choices, and numbers scaled by their bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rl4sys.experience import Array, Arrays
from rl4sys.policy.action_spec import (
    ActionSpec,
    BoxAction,
    DiscreteAction,
    MixedAction,
    MultiDiscreteAction,
    action_array,
    output_size,
)
from rl4sys.policy.policy_spec import PolicySpec
from rl4sys.policy.vector_heads import Decide

Encode = Callable[[Array, Array], object]
"""Writes actions [N, …] into float32 [N, output_size]."""


def action_encoder(action: ActionSpec) -> Encode:
    """Choices as one-hot vectors side by side, then numbers.

    A number with finite bounds is scaled to [−1, 1] and clipped; any other stays as it is.
    """
    match action:
        case DiscreteAction():
            return lambda chosen, out: _one_hot(chosen[:, None], np.zeros(1, np.int64), out)
        case MultiDiscreteAction(sizes=sizes):
            return _choices(sizes)
        case BoxAction():
            return _numbers(action)
        case MixedAction(sizes=sizes):
            return _mixed(len(sizes), action.choices, _choices(sizes), _numbers(action.box))


def action_vectors(spec: ActionSpec, action: Array) -> Array:
    """Actions [B, L, …] as networks see them, in training as in the memory of a policy."""
    flat = action.reshape(-1, *action_array(spec).shape)
    vectors = np.zeros((len(flat), output_size(spec)), np.float32)
    action_encoder(spec)(flat, vectors)
    return vectors.reshape(*action.shape[: action.ndim - flat.ndim + 1], -1)


def remember_action(decide: Decide, spec: PolicySpec, registers: Mapping[str, Array]) -> Decide:
    """The head, writing its action into the register that its setting `action` names, if it has one."""
    name = spec.head.action_register
    if name is None:
        return decide
    encode, register = action_encoder(spec.action), registers[name]

    def decide_and_remember(noise: Array) -> tuple[Array, Arrays]:
        action, extras = decide(noise)
        encode(action, register)
        return action, extras

    return decide_and_remember


def scaling(box: BoxAction) -> tuple[Array, Array, Array]:
    """Middle, divisor and limit of each number: what networks see is (a − middle) / divisor, within ± limit."""
    low, high = np.array(box.low, np.float32), np.array(box.high, np.float32)
    with np.errstate(all="ignore"):
        scale, middle = (high - low) / np.float32(2.0), (high + low) / np.float32(2.0)
    bounded = np.isfinite(scale)
    # A number whose bounds are equal is always 0.
    divisor = np.where(bounded & (scale > 0.0), scale, np.float32(1.0))
    limit = np.where(bounded, np.where(scale > 0.0, np.float32(1.0), np.float32(0.0)), np.float32(np.inf))
    return np.where(bounded, middle, np.float32(0.0)), divisor, limit


def _choices(sizes: tuple[int, ...]) -> Encode:
    first = np.cumsum((0, *sizes[:-1]))
    return lambda chosen, out: _one_hot(chosen, first, out)


def _one_hot(chosen: Array, first: Array, out: Array) -> None:
    out.fill(0.0)
    out[np.arange(len(out))[:, None], chosen + first] = 1.0


def _numbers(box: BoxAction) -> Encode:
    middle, divisor, limit = scaling(box)

    def encode(actions: Array, out: Array) -> None:
        np.subtract(actions, middle, out)
        np.divide(out, divisor, out)
        np.maximum(out, -limit, out=out)
        np.minimum(out, limit, out=out)

    return encode


def _mixed(parts: int, choices: int, encode_choices: Encode, encode_numbers: Encode) -> Encode:
    def encode(actions: Array, out: Array) -> None:
        encode_choices(actions[:, :parts].astype(np.int64), out[:, :choices])
        encode_numbers(actions[:, parts:], out[:, choices:])

    return encode
