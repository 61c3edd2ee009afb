"""Ops over vectors that are several equal parts: softmax, block-diagonal products, the block gate and latents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy.compiled_op import Compiled, buffer, op_count, op_number, sigmoid
from rl4sys.policy.policy_spec import Op, number

Blocks = Callable[[Array, Array], Array]
"""Multiplies x [N, groups, in] with weights [groups, in, out]."""


def softmax(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    """Each of the setting `groups` equal parts, normalised."""
    (x,) = inputs
    count, groups = len(x), op_count(op, "groups", x.shape[1])
    out = buffer(x.shape)
    parts, weight = x.reshape(count, groups, -1), np.empty((count, groups, x.shape[1] // groups), np.float32)

    def run() -> None:
        np.subtract(parts, np.maximum.reduce(parts, -1, keepdims=True), weight)
        np.exp(weight, weight)
        np.divide(weight, np.add.reduce(weight, -1, keepdims=True), weight)
        np.copyto(out, weight.reshape(out.shape))

    return Compiled((out,), (run,))


def all_rows(x: Array, weight: Array) -> Array:
    """One product of matrices for each group."""
    product: Array = np.matmul(x.transpose(1, 0, 2), weight).transpose(1, 0, 2)
    return product


def each_row(x: Array, weight: Array) -> Array:
    """The same, with the bits of a single row in every row."""
    product: Array = np.matmul(x[:, :, None], weight)[:, :, 0]
    return product


def grouped_linear(op: Op, inputs: list[Array], tensors: list[Array], product: Blocks = all_rows) -> Compiled:
    """A block-diagonal product: part i of x with weight i; the results one after the other, plus a bias."""
    (x,), (weight, bias) = inputs, tensors
    groups, width, size = weight.shape
    if x.shape[1] != groups * width or bias.shape != (groups * size,):
        raise ValueError(
            f"Op 'grouped_linear' reads {x.shape[1]} numbers, weights {weight.shape} and a bias {bias.shape}; expected "
            f"{groups * width} numbers and a bias of {groups * size}."
        )
    out, parts = buffer((len(x), groups * size)), x.reshape(len(x), groups, width)
    if len(x) == 1:
        product = each_row

    def run() -> None:
        np.add(product(parts, weight).reshape(out.shape), bias, out)

    return Compiled((out,), (run,))


def gate(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    """The block gate of DreamerV3: state' = u · tanh(r · c) + (1 − u) · state, with r, c and u for each group in x."""
    (x, state), bias = inputs, op_number(op, "update_bias")
    count, size = state.shape
    groups = op_count(op, "groups", size)
    if x.shape[1] != 3 * size:
        raise ValueError(f"Op 'gate' reads {x.shape[1]} numbers for a state of {size}; expected {3 * size}.")
    parts, before = x.reshape(count, groups, 3, -1), state.reshape(count, groups, -1)
    candidate, update = np.empty(before.shape, np.float32), np.empty(before.shape, np.float32)
    out = buffer(state.shape)

    def run() -> None:
        sigmoid(parts[:, :, 0], candidate)
        np.multiply(candidate, parts[:, :, 1], candidate)
        np.tanh(candidate, candidate)
        np.add(parts[:, :, 2], bias, update)
        sigmoid(update, update)
        following = update * candidate + (np.float32(1.0) - update) * before
        np.copyto(out, following.reshape(out.shape))

    return Compiled((out,), (run,))


def latent(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    """One-hot draws, one for each group, from its softmax mixed with a little uniform probability (`unimix`).

    Sampled like the categorical head: the first class whose cumulative probability exceeds u · total, in float64, so
    that every language that sees the same logits draws the same. Without `draw`, the first of the highest logits.
    """
    logits = inputs[0]
    count, size = logits.shape
    groups = op_count(op, "groups", size)
    classes, unimix = size // groups, number(op.settings, "unimix", "op 'latent'")
    scores, rows = logits.reshape(count * groups, classes), np.arange(count * groups)
    out = buffer(logits.shape)
    chosen = np.empty((count * groups, classes), np.float32)

    def write(choice: Array, invalid: Array) -> None:
        chosen.fill(0.0)
        chosen[rows, choice] = 1.0
        # Logits that are NaN or infinite stay visible: they must not become a choice like any other.
        np.add(chosen, invalid, chosen)
        np.copyto(out, chosen.reshape(out.shape))

    def take_best() -> None:
        peak = np.maximum.reduce(scores, 1, keepdims=True)
        write(scores.argmax(1), peak - peak)

    if not _draws(op):
        return Compiled((out,), (take_best,))
    uniform = _uniform(op, inputs, groups)
    keep, floor = 1.0 - unimix, unimix / classes
    shifted, cumulative = (np.empty((count * groups, classes), np.float64) for _ in range(2))

    def sample() -> None:
        np.subtract(scores, np.maximum.reduce(scores, 1, keepdims=True), shifted, dtype=np.float64)
        np.exp(shifted, shifted)
        np.add.accumulate(shifted, 1, out=cumulative)
        np.multiply(shifted, keep / cumulative[:, -1:], shifted)
        np.add(shifted, floor, shifted)
        np.add.accumulate(shifted, 1, out=cumulative)
        total = cumulative[:, -1:]
        below = cumulative <= total * uniform.reshape(-1, 1)
        choice = np.add.reduce(below, 1, np.int64)
        np.minimum(choice, classes - 1, out=choice)
        write(choice, total - total)

    return Compiled((out,), (sample,))


def _draws(op: Op) -> bool:
    draw = op.settings.get("draw")
    if not isinstance(draw, bool):
        raise ValueError(f"Setting 'draw' of op 'latent' is {draw!r}; expected true or false.")
    return draw


def _uniform(op: Op, inputs: list[Array], groups: int) -> Array:
    if len(inputs) != 2 or inputs[1].shape[1:] != (groups,):
        raise ValueError(f"Op 'latent' draws from {groups} groups; give it a register of as many uniform numbers.")
    return inputs[1]
