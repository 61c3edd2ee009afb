"""How the layers of torch are written as ops of a policy program."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from torch import nn

from rl4sys.policy import ProgramBuilder

Write: TypeAlias = Callable[[ProgramBuilder, str, str], str]
"""Adds ops over a register, tensors led by a name; returns the register of the result."""


def layer_writer(layer: nn.Module) -> Write | None:
    """How a layer of torch is written, or None if it has no counterpart."""
    kind = _activation(layer)
    if kind is not None:
        return lambda builder, register, name: builder.activation(register, kind)
    match layer:
        case nn.Linear(bias=bias) if bias is not None:
            return lambda builder, register, name: builder.linear(register, layer.out_features, name)
        case nn.LayerNorm(eps=1e-5, elementwise_affine=True) if len(layer.normalized_shape) == 1:
            return lambda builder, register, name: builder.layer_norm(register, name)
        case nn.LeakyReLU(negative_slope=slope):
            return lambda builder, register, name: leaky_relu(builder, register, slope)
        case nn.Softmax(dim=-1):
            return lambda builder, register, name: builder.softmax(register)
        case nn.Flatten(start_dim=1, end_dim=-1):
            return lambda builder, register, name: builder.flat(register)
        case nn.Unflatten(dim=1, unflattened_size=sizes) if all(isinstance(size, int) for size in sizes):
            return lambda builder, register, name: builder.reshape(register, [int(size) for size in sizes])
        case nn.Identity():
            return lambda builder, register, name: register
    return _convolution(layer) or _pooling(layer)


def leaky_relu(builder: ProgramBuilder, register: str, slope: float) -> str:
    """x if x > 0, else slope · x."""
    return builder.op("leaky_relu", (register,), builder.shape(register), slope=slope)


def over_last_axes(builder: ProgramBuilder, register: str, count: int, kind: str) -> str:
    """The `mean` or the `amax` over the last axes: a pool with a single window."""
    kept, length = builder.shape(register)[:-count], math.prod(builder.shape(register)[-count:])
    channels = builder.reshape(register, (math.prod(kept), length))
    pool = builder.average_pool if kind == "mean" else builder.max_pool
    return builder.reshape(pool(channels, length, stride=1), kept or (1,))


def _convolution(layer: nn.Module) -> Write | None:
    if not isinstance(layer, nn.Conv1d | nn.Conv2d) or layer.bias is None or layer.groups != 1:
        return None
    kernel, stride, padding, dilation = map(_only, (layer.kernel_size, layer.stride, layer.padding, layer.dilation))
    if kernel is None or stride is None or padding is None or dilation != 1 or layer.padding_mode != "zeros":
        return None
    filters = layer.out_channels

    def write(builder: ProgramBuilder, register: str, name: str) -> str:
        convolution = builder.conv1d if isinstance(layer, nn.Conv1d) else builder.conv2d
        return convolution(register, filters, kernel, name, stride=stride, padding=padding)

    return write


def _pooling(layer: nn.Module) -> Write | None:
    match layer:
        case nn.AdaptiveAvgPool1d(output_size=1):
            return lambda builder, register, name: _kept_axes(builder, register, 1)
        case nn.AdaptiveAvgPool2d(output_size=1 | (1, 1)):
            return lambda builder, register, name: _kept_axes(builder, register, 2)
        case nn.MaxPool1d() | nn.MaxPool2d() if _only(layer.dilation) == 1 and not layer.return_indices:
            kind = "max"
        case nn.AvgPool1d(count_include_pad=True):
            kind = "mean"
        case nn.AvgPool2d(count_include_pad=True, divisor_override=None):
            kind = "mean"
        case _:
            return None
    kernel, stride, padding = (_only(value) for value in (layer.kernel_size, layer.stride, layer.padding))
    if layer.ceil_mode or kernel is None or stride is None or padding is None:
        return None

    def write(builder: ProgramBuilder, register: str, name: str) -> str:
        pool = builder.max_pool if kind == "max" else builder.average_pool
        return pool(register, kernel, stride=stride, padding=padding)

    return write


def _kept_axes(builder: ProgramBuilder, register: str, axes: int) -> str:
    """The mean over the last axes, which stay as axes of length 1."""
    mean = over_last_axes(builder, register, axes, "mean")
    return builder.reshape(mean, (*builder.shape(register)[:-axes], *(1,) * axes))


def _only(value: object) -> int | None:
    """The number that all axes have in common, or None."""
    lengths = value if isinstance(value, tuple) else (value,)
    first = lengths[0]
    return first if isinstance(first, int) and all(length == first for length in lengths) else None


def _activation(layer: nn.Module) -> str | None:
    match layer:
        case nn.Tanh() | nn.ReLU() | nn.Sigmoid() | nn.SiLU():
            return type(layer).__name__.lower()
        case nn.GELU(approximate="tanh"):
            return "gelu"
        case nn.ELU(alpha=1.0):
            return "elu"
        case nn.Softplus(beta=1.0):
            return "softplus"
    return None
