"""The ops for many rows at once, with the same bits as for each row alone.

A product of matrices rounds differently from products of vectors with a matrix; these here are the latter, stacked.
Everything else in a program treats rows apart already.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy import group_ops
from rl4sys.policy.compiled_op import Compiled
from rl4sys.policy.local_ops import compiler_of
from rl4sys.policy.ops import conv2d, gru, lstm, with_bias
from rl4sys.policy.policy_spec import Op
from rl4sys.policy.window_ops import conv1d


def compile_for_rows(op: Op, inputs: list[Array], tensors: list[Array], single: list[Array]) -> Compiled:
    """The calls of an op. `single`: its inputs in the program for one row, which decide how that adds a bias."""
    match op.kind:
        case "linear":
            return _linear(inputs[0], tensors, single[0])
        case "gru":
            return gru(op, inputs, tensors, each_row)
        case "lstm":
            return lstm(op, inputs, tensors, each_row)
        case "grouped_linear":
            return group_ops.grouped_linear(op, inputs, tensors, group_ops.each_row)
        case "conv2d":
            return conv2d(op, inputs, tensors, partial(_each_image, len(inputs[0])))
        case "conv1d":
            return conv1d(op, inputs, tensors, partial(_each_image, len(inputs[0])))
    return compiler_of(op.kind)(op, inputs, tensors)


def each_row(x: Array, weight: Array) -> Array:
    """The product of every row with the weights."""
    product: Array = np.matmul(x[:, None], weight)[:, 0]
    return product


def _each_image(count: int, unfolded: Array, kernel: Array, out: Array) -> None:
    np.matmul(unfolded.reshape(count, -1, unfolded.shape[1]), kernel, out.reshape(count, -1, out.shape[1]))


def _linear(x: Array, tensors: list[Array], single: Array) -> Compiled:
    weight, bias = tensors[0], tensors[1:]
    out = np.empty((len(x), weight.shape[1]), np.float32)
    extended = with_bias(single, weight, *bias) if bias else None
    if extended is None:
        multiply = partial(np.matmul, x[:, None], weight, out[:, None])
        return Compiled((out,), (multiply, *(partial(np.add, out, one, out) for one in bias)))
    rows = np.ones((len(x), 1, x.shape[1] + 1), np.float32)
    copy = partial(np.copyto, rows[:, 0, :-1], x)
    return Compiled((out,), (copy, partial(np.matmul, rows, extended[1], out[:, None])))
