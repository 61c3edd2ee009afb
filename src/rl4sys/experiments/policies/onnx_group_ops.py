"""The ops over groups of numbers, latents and attention as ONNX nodes."""

from __future__ import annotations

import numpy as np

from rl4sys.experiments.policies.onnx_graph import Graph
from rl4sys.policy import Op
from rl4sys.policy.policy_spec import number


def symlog(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """sign(x) · log(1 + |x|)."""
    (x,) = inputs
    grown = graph.one("Log", graph.one("Add", graph.one("Abs", x), graph.constant(1.0)))
    return (graph.one("Mul", graph.one("Sign", x), grown),)


def softmax(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """Each of the equal parts, normalised."""
    parts = graph.reshaped(inputs[0], 0, _whole(op, "groups"), -1)
    return (graph.one("Flatten", graph.one("Softmax", parts, axis=-1), axis=1),)


def grouped_linear(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """A block-diagonal product and a bias."""
    weight, bias = tensors
    groups, width, _ = graph.shape(weight)
    parts = graph.one("Transpose", graph.reshaped(inputs[0], 0, groups, width), perm=[1, 0, 2])
    product = graph.one("Transpose", graph.one("MatMul", parts, weight), perm=[1, 0, 2])
    return (graph.one("Add", graph.one("Flatten", product, axis=1), bias),)


def gate(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """state' = u · tanh(r · c) + (1 − u) · state, for each group."""
    groups, axis = _whole(op, "groups"), graph.constant(np.array([2], np.int64))
    parts = graph.node("Split", (graph.reshaped(inputs[0], 0, groups, 3, -1),), 3, axis=2)
    reset, candidate, update = (graph.one("Squeeze", part, axis) for part in parts)
    state = graph.reshaped(inputs[1], 0, groups, -1)
    new = graph.one("Tanh", graph.one("Mul", graph.one("Sigmoid", reset), candidate))
    bias = graph.constant(number(op.settings, "update_bias", "op 'gate'"))
    share = graph.one("Sigmoid", graph.one("Add", update, bias))
    kept = graph.one("Mul", graph.one("Sub", graph.constant(1.0), share), state)
    return (graph.one("Flatten", graph.one("Add", graph.one("Mul", share, new), kept), axis=1),)


def latent(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """One-hot draws in float64, one for each group; without draws the first of the highest logits."""
    logits = graph.reshaped(inputs[0], 0, _whole(op, "groups"), -1)
    classes = graph.one("Shape", logits, start=2, end=3)
    if op.settings["draw"]:
        chosen = _drawn(graph, op, logits, inputs[1], classes)
    else:
        chosen = graph.one("ArgMax", logits, axis=2, keepdims=0)
    one_hot = graph.one("OneHot", chosen, classes, graph.constant(np.array([0, 1], np.float32)), axis=-1)
    return (graph.one("Flatten", one_hot, axis=1),)


def _drawn(graph: Graph, op: Op, logits: str, uniform: str, classes: str) -> str:
    """The first class whose cumulative probability exceeds u · total; the last if none does."""
    unimix = number(op.settings, "unimix", "op 'latent'")
    probability = graph.one("Softmax", graph.cast(logits, "DOUBLE"), axis=2)
    kept = graph.one("Mul", probability, graph.constant(np.array(1.0 - unimix)))
    floor = graph.one("Div", graph.constant(np.array([unimix], np.float64)), graph.cast(classes, "DOUBLE"))
    cumulative = graph.one("CumSum", graph.one("Add", kept, floor), graph.constant(np.array(2, np.int64)))
    total = graph.one("Gather", cumulative, graph.constant(np.array([-1], np.int64)), axis=2)
    axis = graph.constant(np.array([2], np.int64))
    numbers = graph.one("Unsqueeze", graph.cast(uniform, "DOUBLE"), axis)
    below = graph.one("LessOrEqual", cumulative, graph.one("Mul", total, numbers))
    counted = graph.one("ReduceSum", graph.to_integer(below), axis, keepdims=0)
    return graph.one("Min", counted, graph.one("Sub", classes, graph.constant(np.array([1], np.int64))))


def attention(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """One decision over the ring of keys and values; the ring and the count afterwards."""
    query, key, value, keys, values, count = inputs
    heads, window = graph.shape(tensors[0])
    length, places = graph.constant(float(window)), graph.constant(np.arange(window, dtype=np.float32))
    slot = graph.one("Mod", count, length, fmod=1)
    second, third = (graph.constant(np.array([axis], np.int64)) for axis in (1, 2))
    is_slot = graph.one("Unsqueeze", graph.one("Equal", places, slot), third)
    keys = graph.one("Where", is_slot, graph.one("Unsqueeze", key, second), keys)
    values = graph.one("Where", is_slot, graph.one("Unsqueeze", value, second), values)
    age = graph.one("Mod", graph.one("Add", graph.one("Sub", slot, places), length), length, fmod=1)
    bias = graph.one("Transpose", graph.one("Gather", tensors[0], graph.to_integer(age), axis=1), perm=[1, 0, 2])
    queries = graph.reshaped(query, 0, heads, 1, -1)
    by_head = graph.one("Transpose", graph.reshaped(keys, 0, window, heads, -1), perm=[0, 2, 3, 1])
    width = graph.one("Sqrt", graph.cast(graph.one("Shape", queries, start=3, end=4), "FLOAT"))
    scores = graph.one("Div", graph.one("MatMul", queries, by_head), width)
    scores = graph.one("Add", scores, graph.one("Unsqueeze", bias, third))
    is_written = graph.one("LessOrEqual", age, count)
    is_written = graph.one("Unsqueeze", is_written, graph.constant(np.array([1, 2], np.int64)))
    weights = graph.one("Softmax", graph.one("Where", is_written, scores, graph.constant(-np.inf)), axis=-1)
    read = graph.one("Transpose", graph.reshaped(values, 0, window, heads, -1), perm=[0, 2, 1, 3])
    result = graph.one("Flatten", graph.one("MatMul", weights, read), axis=1)
    following = graph.one("Add", count, graph.constant(1.0))
    is_full = graph.one("GreaterOrEqual", following, graph.constant(2.0 * window))
    return result, keys, values, graph.one("Where", is_full, graph.one("Sub", following, length), following)


def _whole(op: Op, name: str) -> int:
    return int(number(op.settings, name, f"op '{op.kind}'"))
