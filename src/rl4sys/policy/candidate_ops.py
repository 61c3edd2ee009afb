"""Ops over candidates: they compute the first k rows of [N, …], so that a decision costs in proportion to k."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy.activations import ACTIVATIONS
from rl4sys.policy.candidates import real_rows
from rl4sys.policy.compiled_op import Compiled, Thunk, buffer
from rl4sys.policy.policy_spec import Op

NO_ACTIVATION = "none"


def candidate_linear(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    """activation((row, context) · w + b) for each candidate; the rows of absent ones are zeros."""
    rows, count, weight, bias = inputs[0], inputs[1], tensors[0], tensors[1]
    contexts: Sequence[Array | None] = list(inputs[2]) if len(inputs) > 2 else [None] * len(rows)
    width = rows.shape[-1] + (inputs[2].shape[-1] if len(inputs) > 2 else 0)
    if rows.ndim != 3 or rows.dtype != np.float32 or weight.shape[0] != width or count.shape[1:] != (1,):
        raise ValueError(
            f"Op 'candidate_linear' reads rows {rows.dtype}{list(rows.shape[1:])}, a count {list(count.shape[1:])} and "
            f"weights {list(weight.shape)}; expected float32 rows [N, features], a count [1] and weights for {width} "
            f"numbers."
        )
    out = np.zeros((*rows.shape[:2], weight.shape[1]), np.float32)
    each = zip(rows, count, contexts, out, strict=True)
    return Compiled((out,), tuple(_linear_thunk(op, *lane, weight, bias) for lane in each))


def _linear_thunk(
    op: Op, rows: Array, count: Array, context: Array | None, out: Array, weight: Array, bias: Array
) -> Thunk:
    most, width = rows.shape
    of_row, of_context = weight[:width], weight[width:]
    kind = op.settings.get("activation")
    if kind != NO_ACTIVATION and kind not in ACTIVATIONS:
        raise ValueError(
            f"Setting 'activation' of op '{op.kind}' is {kind!r}; expected none, {', '.join(ACTIVATIONS)}."
        )
    activate = None if kind == NO_ACTIVATION else ACTIVATIONS[str(kind)]
    total = out if activate is None else np.empty_like(out)
    written = 0

    def run() -> None:
        nonlocal written
        k = real_rows(count, most)
        sums = total[:k]
        np.dot(rows[:k], of_row, sums)
        # The part of the context is the same for all rows.
        np.add(sums, bias if context is None else context.dot(of_context) + bias, sums)
        if activate is not None:
            activate(sums, out[:k])
        if k < written:
            out[k:written] = 0.0
        written = k

    return run


def candidate_pool(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    """The mean and the maximum over the candidates, and log k; zeros if there are none."""
    rows, count = inputs
    out = buffer((len(rows), 2 * rows.shape[2] + 1))
    each = zip(rows, count, out, strict=True)
    return Compiled((out,), tuple(_pool_thunk(*lane) for lane in each))


def _pool_thunk(rows: Array, count: Array, out: Array) -> Thunk:
    most, width = rows.shape
    mean, highest = out[:width], out[width : 2 * width]

    def run() -> None:
        k = real_rows(count, most)
        if k == 0:
            out.fill(0.0)
            return
        np.add.reduce(rows[:k], 0, out=mean)
        np.multiply(mean, np.float32(1.0 / k), mean)
        np.maximum.reduce(rows[:k], 0, out=highest)
        out[-1] = math.log(k)

    return run
