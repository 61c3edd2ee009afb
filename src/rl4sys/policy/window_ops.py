"""Ops over the windows of a sequence [channels, length] or an image [channels, height, width]: conv1d and pooling."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy.compiled_op import Compiled, Compiler, op_whole
from rl4sys.policy.policy_spec import Op

Reduce = Callable[[Array, Array], object]
"""Writes one number for each window: (windows [N, channels, …, values], out [N, channels, …])."""


def conv1d(
    op: Op, inputs: list[Array], tensors: list[Array], multiply: Callable[[Array, Array, Array], object] = np.dot
) -> Compiled:
    """Cross-correlation over [N, C, L], as one matrix product over unfolded windows."""
    (x,), (kernel, bias) = inputs, tensors
    filters, channels, wide = kernel.shape
    if x.ndim != 3 or x.shape[1] != channels:
        raise ValueError(f"Op 'conv1d' reads shape {x.shape[1:]} with a kernel of {kernel.shape[1:]}; expected [C, L].")
    windows = _Windows(op, x, (wide,), 0.0)
    view = windows.view.transpose(0, 2, 1, 3)
    count, length = view.shape[:2]
    unfolded = np.empty((count * length, channels * wide), np.float32)
    product = np.empty((len(unfolded), filters), np.float32)
    out = np.empty((count, filters, length), np.float32)
    flat_kernel = kernel.reshape(filters, -1).T

    def run() -> None:
        windows.fill()
        np.copyto(unfolded.reshape(view.shape), view)
        multiply(unfolded, flat_kernel, product)
        np.add(product, bias, product)
        np.copyto(out, product.reshape(count, length, filters).transpose(0, 2, 1))

    return Compiled((out,), (run,))


def max_pool(axes: int) -> Compiler:
    """The highest number of every window over so many axes; padding is never the highest."""
    return partial(_pool, axes, -np.inf, lambda windows, out: np.maximum.reduce(windows, -1, out=out))


def average_pool(axes: int) -> Compiler:
    """The mean of every window over so many axes; padding counts as zeros."""

    def mean(windows: Array, out: Array) -> None:
        np.add.reduce(windows, -1, out=out)
        np.multiply(out, np.float32(1.0 / windows.shape[-1]), out)

    return partial(_pool, axes, 0.0, mean)


def _pool(axes: int, border: float, reduce: Reduce, op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    (x,) = inputs
    if x.ndim != axes + 2:
        raise ValueError(f"Op '{op.kind}' reads shape {x.shape[1:]}; expected channels and {axes} more axes.")
    kernel, padding = op_whole(op, "kernel", 1), op_whole(op, "padding", 0)
    if 2 * padding > kernel:
        raise ValueError(f"Op '{op.kind}' has padding {padding}; expected at most half of its kernel, {kernel}.")
    windows = _Windows(op, x, (kernel,) * axes, border)
    shape = windows.view.shape[: x.ndim]
    unfolded, out = np.empty(windows.view.shape, np.float32), np.empty(shape, np.float32)

    def run() -> None:
        windows.fill()
        np.copyto(unfolded, windows.view)
        reduce(unfolded.reshape(*shape, -1), out)

    return Compiled((out,), (run,))


class _Windows:
    """The windows of the settings `stride` and `padding` over a padded copy of x [N, C, …]."""

    def __init__(self, op: Op, x: Array, kernel: tuple[int, ...], border: float) -> None:
        stride, padding = op_whole(op, "stride", 1), op_whole(op, "padding", 0)
        lengths = tuple(length + 2 * padding for length in x.shape[2:])
        if any(wide > length for wide, length in zip(kernel, lengths, strict=True)):
            raise ValueError(
                f"Op '{op.kind}' has windows of {kernel}, which do not fit into {x.shape[2:]} with padding {padding}."
            )
        padded = np.full((*x.shape[:2], *lengths), border, np.float32)
        self._x = x
        inner = (slice(None), slice(None), *(slice(padding, padding + length) for length in x.shape[2:]))
        self._inner: Array = padded[inner]
        axes = tuple(range(2, x.ndim))
        view = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=axes)
        self.view: Array = view[(slice(None), slice(None), *(slice(None, None, stride) for _ in axes))]
        """[N, C, positions …, window …]."""

    def fill(self) -> None:
        """Copy what x holds now."""
        np.copyto(self._inner, self._x)
