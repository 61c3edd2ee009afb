"""Actions as networks see them, as ONNX nodes: for policies that remember their last action."""

from __future__ import annotations

import numpy as np

from rl4sys.experiments.policies.onnx_graph import Graph
from rl4sys.policy import ActionSpec, BoxAction, DiscreteAction, MixedAction, MultiDiscreteAction
from rl4sys.policy.action_encoding import scaling


def encoded_action(graph: Graph, spec: ActionSpec, action: str) -> str:
    """One-hot choices, then numbers, scaled where their bounds are finite."""
    match spec:
        case DiscreteAction(n=n):
            return _one_hot(graph, action, n)
        case MultiDiscreteAction(sizes=sizes):
            return graph.one("Concat", *_choices(graph, action, sizes), axis=1)
        case BoxAction():
            return _numbers(graph, action, spec)
        case MixedAction(sizes=sizes, low=low):
            lengths = graph.constant(np.array([len(sizes), len(low)], np.int64))
            chosen, numbers = graph.node("Split", (action, lengths), 2, axis=1)
            parts = _choices(graph, graph.to_integer(chosen), sizes)
            return graph.one("Concat", *parts, _numbers(graph, numbers, spec.box), axis=1)


def _choices(graph: Graph, chosen: str, sizes: tuple[int, ...]) -> list[str]:
    first = graph.constant(np.array([1], np.int64))
    each = graph.node("Split", (chosen, graph.constant(np.ones(len(sizes), np.int64))), len(sizes), axis=1)
    return [_one_hot(graph, graph.one("Squeeze", part, first), size) for part, size in zip(each, sizes, strict=True)]


def _one_hot(graph: Graph, chosen: str, size: int) -> str:
    depth, values = graph.constant(np.array(size, np.int64)), graph.constant(np.array([0, 1], np.float32))
    return graph.one("OneHot", chosen, depth, values, axis=-1)


def _numbers(graph: Graph, numbers: str, box: BoxAction) -> str:
    middle, divisor, limit = (graph.constant(array) for array in scaling(box))
    scaled = graph.one("Div", graph.one("Sub", numbers, middle), divisor)
    return graph.one("Min", graph.one("Max", scaled, graph.one("Neg", limit)), limit)
