"""Ops over windows, parts and axes of arrays as ONNX nodes: conv1d, pooling, slice and reshape."""

from __future__ import annotations

import numpy as np

from rl4sys.experiments.policies.onnx_graph import Graph
from rl4sys.policy import Op
from rl4sys.policy.compiled_op import op_whole
from rl4sys.policy.shape_ops import op_lengths


def conv1d(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """Cross-correlation over [N, C, L]."""
    stride, padding = op_whole(op, "stride", 1), op_whole(op, "padding", 0)
    return (graph.one("Conv", inputs[0], *tensors, strides=[stride], pads=[padding] * 2),)


def max_pool(axes: int, graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """The highest number of every window over so many axes."""
    return (graph.one("MaxPool", inputs[0], **_windows(op, axes)),)


def average_pool(axes: int, graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """The mean of every window over so many axes; padding counts as zeros."""
    return (graph.one("AveragePool", inputs[0], count_include_pad=1, **_windows(op, axes)),)


def slice_part(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """The part from `start` to before `stop` of one axis."""
    axis, start, stop = (op_whole(op, name, 0) for name in ("axis", "start", "stop"))
    bounds = (graph.constant(np.array([value], np.int64)) for value in (start, stop, axis + 1))
    return (graph.one("Slice", inputs[0], *bounds),)


def reshape(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """The same numbers with other axes; 0 keeps the axis of rows."""
    return (graph.reshaped(inputs[0], 0, *op_lengths(op)),)


def _windows(op: Op, axes: int) -> dict[str, list[int]]:
    kernel, stride, padding = op_whole(op, "kernel", 1), op_whole(op, "stride", 1), op_whole(op, "padding", 0)
    return {"kernel_shape": [kernel] * axes, "strides": [stride] * axes, "pads": [padding] * (2 * axes)}
