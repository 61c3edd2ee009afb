"""Attention over the last decisions, whose keys and values are a ring in the carry."""

from __future__ import annotations

import math

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy.compiled_op import Compiled, op_count
from rl4sys.policy.policy_spec import Op


def attention(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    """Writes key and value over the oldest row of the ring, then looks at all rows that were ever written.

    A row's age is how many decisions ago it was written; each head adds a bias by age to its scores. The count of
    decisions loses a whole window once it reaches two, so that it stays small.
    """
    query, key, value, keys, values, count = inputs
    (bias,) = tensors
    rows, window, size = keys.shape
    heads = op_count(op, "heads", size)
    _require_shapes(inputs, bias, heads)
    width = size // heads
    result, next_count = np.empty((rows, size), np.float32), np.empty((rows, 1), np.float32)
    next_keys, next_values = np.empty(keys.shape, np.float32), np.empty(values.shape, np.float32)
    queries = query.reshape(rows, heads, 1, width)
    by_head = next_keys.reshape(rows, window, heads, width).transpose(0, 2, 3, 1)
    read = next_values.reshape(rows, window, heads, width).transpose(0, 2, 1, 3)
    scores = np.empty((rows, heads, 1, window), np.float32)
    number, places, share = np.arange(rows), np.arange(window), np.float32(1.0 / math.sqrt(width))

    def run() -> None:
        before = count[:, 0].astype(np.int64)
        slot = before % window
        np.copyto(next_keys, keys)
        np.copyto(next_values, values)
        next_keys[number, slot], next_values[number, slot] = key, value
        age = (slot[:, None] - places) % window
        np.matmul(queries, by_head, scores)
        np.multiply(scores, share, scores)
        np.add(scores[:, :, 0], bias[:, age].transpose(1, 0, 2), scores[:, :, 0])
        np.copyto(scores, np.float32(-np.inf), where=(age > before[:, None])[:, None, None])
        np.subtract(scores, np.maximum.reduce(scores, -1, keepdims=True), scores)
        np.exp(scores, scores)
        np.divide(scores, np.add.reduce(scores, -1, keepdims=True), scores)
        np.copyto(result, np.matmul(scores, read).reshape(result.shape))
        np.add(count, np.float32(1.0), next_count)
        np.subtract(next_count, np.float32(window), next_count, where=next_count >= 2 * window)

    return Compiled((result, next_keys, next_values, next_count), (run,))


def _require_shapes(inputs: list[Array], bias: Array, heads: int) -> None:
    rows, window, size = inputs[3].shape
    expected = [(rows, size)] * 3 + [(rows, window, size)] * 2 + [(rows, 1)]
    if [array.shape for array in inputs] != expected or bias.shape != (heads, window) or window < 1:
        raise ValueError(
            f"Op 'attention' reads {[array.shape[1:] for array in inputs]} and a bias {bias.shape}; expected query, "
            f"key and value [d], keys and values [window, d], count [1], and a bias [heads, window]."
        )
