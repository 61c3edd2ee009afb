"""The ops over candidates as ONNX nodes."""

from __future__ import annotations

import numpy as np

from rl4sys.experiments.policies.onnx_graph import Graph
from rl4sys.policy import Op

_KINDS = {"tanh": "Tanh", "relu": "Relu", "sigmoid": "Sigmoid", "elu": "Elu", "softplus": "Softplus"}


def silu(graph: Graph, x: str) -> str:
    """x · sigmoid(x)."""
    return graph.one("Mul", x, graph.one("Sigmoid", x))


def gelu(graph: Graph, x: str) -> str:
    """The tanh form."""
    cube = graph.one("Mul", graph.one("Mul", graph.one("Mul", x, x), x), graph.constant(0.044715))
    inner = graph.one("Mul", graph.one("Add", x, cube), graph.constant(0.7978845608))
    half = graph.one("Mul", x, graph.constant(0.5))
    return graph.one("Mul", half, graph.one("Add", graph.one("Tanh", inner), graph.constant(1.0)))


def candidate_linear(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """activation((row, context) · w + b) for each candidate; zeros for the others."""
    rows, count, *context = inputs
    most = _row_count(graph, rows)
    if context:
        one = graph.constant(np.ones(1, np.int64))
        shape = graph.one("Concat", one, most, one, axis=0)
        spread = graph.one("Expand", graph.one("Unsqueeze", context[0], _axes(graph, 1)), shape)
        rows = graph.one("Concat", rows, spread, axis=2)
    total = graph.one("Add", graph.one("MatMul", rows, tensors[0]), tensors[1])
    return (graph.one("Where", _existing(graph, count, most), _activated(graph, op, total), graph.constant(0.0)),)


def candidate_pool(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """The mean and the maximum over the candidates, and log k; zeros if there are none."""
    rows, count = inputs
    most = _row_count(graph, rows)
    real = _existing(graph, count, most)
    found = graph.one("ReduceSum", graph.cast(real, "FLOAT"), _axes(graph, 1), keepdims=0)
    divisor = graph.one("Max", found, graph.constant(1.0))
    total = graph.one("ReduceSum", graph.one("Where", real, rows, graph.constant(0.0)), _axes(graph, 1), keepdims=0)
    highest = graph.one("Where", real, rows, graph.constant(-np.inf))
    highest = graph.one("ReduceMax", highest, axes=[1], keepdims=0)
    highest = graph.one("Where", graph.one("Greater", found, graph.constant(0.0)), highest, graph.constant(0.0))
    parts = graph.one("Div", total, divisor), highest, graph.one("Log", divisor)
    return (graph.one("Concat", *parts, axis=1),)


def _row_count(graph: Graph, rows: str) -> str:
    """N as int64 [1]."""
    return graph.one("Gather", graph.one("Shape", rows), graph.constant(np.array([1], np.int64)), axis=0)


def _existing(graph: Graph, count: str, most: str) -> str:
    """Which rows are candidates: bool [B, N, 1]."""
    zero, one = graph.constant(np.array(0, np.int64)), graph.constant(np.array(1, np.int64))
    places = graph.cast(graph.one("Range", zero, graph.one("Squeeze", most), one), "FLOAT")
    return graph.one("Unsqueeze", graph.one("Less", places, count), _axes(graph, 2))


def _activated(graph: Graph, op: Op, x: str) -> str:
    match op.settings.get("activation"):
        case "none":
            return x
        case "silu":
            return silu(graph, x)
        case "gelu":
            return gelu(graph, x)
        case kind:
            return graph.one(_KINDS[str(kind)], x)


def _axes(graph: Graph, axis: int) -> str:
    return graph.constant(np.array([axis], np.int64))
