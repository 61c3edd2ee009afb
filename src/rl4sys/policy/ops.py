"""The ops in numpy: each op is compiled to calls without arguments on buffers that are allocated once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy.activations import ACTIVATIONS
from rl4sys.policy.attention import attention
from rl4sys.policy.candidate_ops import candidate_linear, candidate_pool
from rl4sys.policy.compiled_op import Compiled, Compiler, Product, buffer, op_number, sigmoid
from rl4sys.policy.group_ops import gate, grouped_linear, latent, softmax
from rl4sys.policy.policy_spec import Op
from rl4sys.policy.shape_ops import reshape, slice_part
from rl4sys.policy.window_ops import average_pool, conv1d, max_pool


def _linear(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    """x · w + b with w [in, out]: no transposes, and rows that a compiler can vectorise over outputs."""
    (x,), weight = inputs, tensors[0]
    if x.dtype != np.float32:
        raise ValueError(f"Op 'linear' reads '{op.inputs[0]}' of {x.dtype}; pass it through 'scale' before.")
    out = buffer((len(x), weight.shape[1]))
    if len(x) != 1:
        multiply = partial(x.dot, weight, out)
        return Compiled((out,), (multiply, *(partial(np.add, out, bias[None], out) for bias in tensors[1:])))
    # A single observation: as vectors, and by the method, which skips the dispatch of np.dot, a third of its time.
    extended = with_bias(x, *tensors) if len(tensors) > 1 else None
    if extended is not None:
        row, matrix = extended
        return Compiled((out,), (partial(row.dot, matrix, out[0]),))
    multiply = partial(x[0].dot, weight, out[0])
    return Compiled((out,), (multiply, *(partial(np.add, out[0], bias, out[0]) for bias in tensors[1:])))


def with_bias(x: Array, weight: Array, bias: Array) -> tuple[Array, Array] | None:
    """(x, 1) and the bias as one more row of the weights, so that one product does both; None if they are not adjacent.

    They are where the row came from `buffer` and the bias follows the weights, as in a policy's flat weights.
    """
    row, flat = x.base, weight.base
    inputs, outputs = weight.shape
    if row is None or row.shape != (inputs + 1,) or bias.shape != (outputs,):
        return None
    if flat is None or flat.ndim != 1 or bias.base is not flat or _address(bias) != _address(weight) + weight.nbytes:
        return None
    first = (_address(weight) - _address(flat)) // flat.itemsize
    return row, flat[first : first + (inputs + 1) * outputs].reshape(inputs + 1, outputs)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _elementwise(function: Callable[[Array, Array], object]) -> Compiler:
    def compile_op(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
        (x,) = inputs
        out = buffer(x.shape)
        return Compiled((out,), (partial(function, x, out),))

    return compile_op


def _symlog(x: Array, out: Array) -> None:
    np.abs(x, out)
    np.log1p(out, out)
    np.copysign(out, x, out)


def _leaky_relu(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    (x,), slope = inputs, op_number(op, "slope")
    out = buffer(x.shape)
    return Compiled((out,), (lambda: np.copyto(out, np.where(x > 0, x, x * slope)),))


def _standardize(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    (x,), (mean, scale) = inputs, (tensor[None] for tensor in tensors)
    bound = op_number(op, "clip")
    out = buffer(x.shape)
    calls = (
        partial(np.subtract, x, mean, out),
        partial(np.multiply, out, scale, out),
        partial(np.maximum, out, -bound, out=out),
        partial(np.minimum, out, bound, out=out),
    )
    return Compiled((out,), calls)


def _layer_norm(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    (x,), (gain, bias), epsilon = inputs, tensors, op_number(op, "epsilon")
    out, share = buffer(x.shape), np.float32(1.0 / x.shape[-1])

    def run() -> None:
        centred = x - np.add.reduce(x, axis=-1, keepdims=True) * share
        variance = np.add.reduce(centred * centred, axis=-1, keepdims=True) * share
        np.add(centred / np.sqrt(variance + epsilon) * gain, bias, out)

    return Compiled((out,), (run,))


def _rms_norm(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    (x,), (gain,), epsilon = inputs, tensors, op_number(op, "epsilon")
    out, share = buffer(x.shape), np.float32(1.0 / x.shape[-1])

    def run() -> None:
        square = np.add.reduce(x * x, axis=-1, keepdims=True) * share
        np.multiply(x / np.sqrt(square + epsilon), gain, out)

    return Compiled((out,), (run,))


def conv2d(
    op: Op, inputs: list[Array], tensors: list[Array], multiply: Callable[[Array, Array, Array], object] = np.dot
) -> Compiled:
    """Cross-correlation over [N, C, H, W], as one matrix product over unfolded windows."""
    (x,), (kernel, bias) = inputs, tensors
    stride, padding = int(op_number(op, "stride")), int(op_number(op, "padding"))
    count, channels, height, width = x.shape
    filters, _, tall, wide = kernel.shape
    padded = np.zeros((count, channels, height + 2 * padding, width + 2 * padding), np.float32)
    inner = padded[:, :, padding : padding + height, padding : padding + width]
    windows = np.lib.stride_tricks.sliding_window_view(padded, (tall, wide), axis=(2, 3))
    windows = windows[:, :, ::stride, ::stride]
    rows, columns = windows.shape[2:4]
    windows = windows.transpose(0, 2, 3, 1, 4, 5)
    unfolded = np.empty((count * rows * columns, channels * tall * wide), np.float32)
    product = np.empty((len(unfolded), filters), np.float32)
    out = np.empty((count, filters, rows, columns), np.float32)
    flat_kernel = kernel.reshape(filters, -1).T

    def run() -> None:
        np.copyto(inner, x)
        np.copyto(unfolded.reshape(windows.shape), windows)
        multiply(unfolded, flat_kernel, product)
        np.add(product, bias, product)
        np.copyto(out, product.reshape(count, rows, columns, filters).transpose(0, 3, 1, 2))

    return Compiled((out,), (run,))


def _channels_first(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    """[N, H, W, C] as float32 [N, C, H, W], copied, so that its rows are contiguous."""
    turned = inputs[0].transpose(0, 3, 1, 2)
    out = np.empty(turned.shape, np.float32)
    return Compiled((out,), (partial(np.copyto, out, turned),))


def _flatten(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    (x,) = inputs
    return Compiled((x.reshape(len(x), math.prod(x.shape[1:])),), ())


def _concat(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    out = buffer((len(inputs[0]), sum(x.shape[1] for x in inputs)))
    return Compiled((out,), (partial(np.concatenate, inputs, axis=1, out=out),))


def _add(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    first, second = inputs
    out = buffer(first.shape)
    return Compiled((out,), (partial(np.add, first, second, out),))


def _multiply(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    first, second = inputs
    if first.shape != second.shape:
        raise ValueError(f"Op 'multiply' reads shapes {first.shape[1:]} and {second.shape[1:]}; expected equal ones.")
    out = buffer(first.shape)
    return Compiled((out,), (partial(np.multiply, first, second, out),))


def _scale(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    (x,), factor, offset = inputs, op_number(op, "factor"), op_number(op, "offset")
    out = buffer(x.shape)
    multiply = partial(np.multiply, x, factor, out, casting="unsafe", dtype=np.float32)
    return Compiled((out,), (multiply, partial(np.add, out, offset, out)) if offset else (multiply,))


def gru(op: Op, inputs: list[Array], tensors: list[Array], product: Product = np.dot) -> Compiled:
    """One step; gates in the order reset, update, new."""
    (x, hidden), (input_weight, hidden_weight, input_bias, hidden_bias) = inputs, tensors
    size = hidden.shape[1]
    out, gates = np.empty(hidden.shape, np.float32), np.empty((len(x), 2 * size), np.float32)

    def run() -> None:
        from_input = product(x, input_weight) + input_bias
        from_hidden = product(hidden, hidden_weight) + hidden_bias
        sigmoid(from_input[:, : 2 * size] + from_hidden[:, : 2 * size], gates)
        reset, update = gates[:, :size], gates[:, size:]
        new = np.tanh(from_input[:, 2 * size :] + reset * from_hidden[:, 2 * size :])
        np.add((np.float32(1.0) - update) * new, update * hidden, out)

    return Compiled((out,), (run,))


def lstm(op: Op, inputs: list[Array], tensors: list[Array], product: Product = np.dot) -> Compiled:
    """One step; gates in the order input, forget, cell, output."""
    (x, hidden, cell), (input_weight, hidden_weight, input_bias, hidden_bias) = inputs, tensors
    size = hidden.shape[1]
    next_hidden, next_cell = np.empty(hidden.shape, np.float32), np.empty(cell.shape, np.float32)
    gate = np.empty((3, *hidden.shape), np.float32)

    def run() -> None:
        total = product(x, input_weight) + input_bias + product(hidden, hidden_weight) + hidden_bias
        sigmoid(total[:, :size], gate[0])
        sigmoid(total[:, size : 2 * size], gate[1])
        sigmoid(total[:, 3 * size :], gate[2])
        np.add(gate[1] * cell, gate[0] * np.tanh(total[:, 2 * size : 3 * size]), next_cell)
        np.multiply(gate[2], np.tanh(next_cell), next_hidden)

    return Compiled((next_hidden, next_cell), (run,))


def _embed(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    """Rows of a table by index; several indices give their rows one after the other."""
    (index,), (table,) = inputs, tensors
    out = np.empty((len(index), math.prod(index.shape[1:]) * table.shape[1]), np.float32)
    return Compiled((out,), (lambda: np.copyto(out, table[index.astype(np.int64)].reshape(out.shape)),))


COMPILERS: dict[str, Compiler] = {
    "linear": _linear,
    **{kind: _elementwise(function) for kind, function in ACTIVATIONS.items()},
    "leaky_relu": _leaky_relu,
    "standardize": _standardize,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "channels_first": _channels_first,
    "conv2d": conv2d,
    "flatten": _flatten,
    "concat": _concat,
    "add": _add,
    "scale": _scale,
    "gru": gru,
    "lstm": lstm,
    "embed": _embed,
    "multiply": _multiply,
    "symlog": _elementwise(_symlog),
    "log": _elementwise(np.log),
    "softmax": softmax,
    "grouped_linear": grouped_linear,
    "gate": gate,
    "latent": latent,
    "attention": attention,
    "candidate_linear": candidate_linear,
    "candidate_pool": candidate_pool,
    "conv1d": conv1d,
    "max_pool1d": max_pool(1),
    "max_pool2d": max_pool(2),
    "average_pool1d": average_pool(1),
    "average_pool2d": average_pool(2),
    "slice": slice_part,
    "reshape": reshape,
}
"""Every op that this runtime knows, by name. A client lists these when it joins."""
