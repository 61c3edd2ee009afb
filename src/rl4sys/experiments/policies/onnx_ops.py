"""The op set as ONNX nodes, so that other programs can run a policy that was trained here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from rl4sys.experiments.policies.onnx_candidate_ops import candidate_linear, candidate_pool, gelu, silu
from rl4sys.experiments.policies.onnx_graph import Graph
from rl4sys.experiments.policies.onnx_group_ops import attention, gate, grouped_linear, latent, softmax, symlog
from rl4sys.experiments.policies.onnx_window_ops import average_pool, conv1d, max_pool, reshape, slice_part
from rl4sys.policy import Op
from rl4sys.policy.policy_spec import number

Emitter: TypeAlias = Callable[[Graph, Op, list[str], list[str]], tuple[str, ...]]
"""Adds an op whose inputs and tensors have these names; the names of its outputs."""
_SAME_NUMBERS = ("flatten", "reshape")
"""Ops whose results have the type of what they read."""


def emit(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    """Add one op. Only `embed`, `flatten` and `reshape` read anything but float32; the others are given it."""
    keeps = op.kind in ("embed", *_SAME_NUMBERS)
    outputs = EMITTERS[op.kind](graph, op, inputs if keeps else [graph.to_float(name) for name in inputs], tensors)
    if op.kind in _SAME_NUMBERS and not graph.is_float(inputs[0]):
        graph.note_dtype(outputs[0], "other")
    return outputs


def _plain(kind: str, **attributes: Any) -> Emitter:
    return lambda graph, op, inputs, tensors: (graph.one(kind, *inputs, **attributes),)


def _linear(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    return (graph.one("Gemm", inputs[0], *tensors),)


def _leaky_relu(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    return (graph.one("LeakyRelu", inputs[0], alpha=_number(op, "slope")),)


def _standardize(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    bound = _number(op, "clip")
    standard = graph.one("Mul", graph.one("Sub", inputs[0], tensors[0]), tensors[1])
    return (graph.one("Clip", standard, graph.constant(-bound), graph.constant(bound)),)


def _layer_norm(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    return (graph.one("LayerNormalization", inputs[0], *tensors, axis=-1, epsilon=_number(op, "epsilon")),)


def _rms_norm(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    (x,) = inputs
    square = graph.one("ReduceMean", graph.one("Mul", x, x), axes=[-1], keepdims=1)
    root = graph.one("Sqrt", graph.one("Add", square, graph.constant(_number(op, "epsilon"))))
    return (graph.one("Mul", graph.one("Div", x, root), tensors[0]),)


def _conv2d(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    stride, padding = int(_number(op, "stride")), int(_number(op, "padding"))
    return (graph.one("Conv", inputs[0], *tensors, strides=[stride, stride], pads=[padding] * 4),)


def _scale(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    scaled = graph.one("Mul", inputs[0], graph.constant(_number(op, "factor")))
    return (graph.one("Add", scaled, graph.constant(_number(op, "offset"))),)


def _gru(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    (x, hidden), (input_weight, hidden_weight, input_bias, hidden_bias) = inputs, tensors
    from_input = graph.node("Split", (graph.one("Gemm", x, input_weight, input_bias),), 3, axis=1)
    from_hidden = graph.node("Split", (graph.one("Gemm", hidden, hidden_weight, hidden_bias),), 3, axis=1)
    reset, update = (graph.one("Sigmoid", graph.one("Add", from_input[gate], from_hidden[gate])) for gate in range(2))
    new = graph.one("Tanh", graph.one("Add", from_input[2], graph.one("Mul", reset, from_hidden[2])))
    keep = graph.one("Sub", graph.constant(1.0), update)
    return (graph.one("Add", graph.one("Mul", keep, new), graph.one("Mul", update, hidden)),)


def _lstm(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    (x, hidden, cell), (input_weight, hidden_weight, input_bias, hidden_bias) = inputs, tensors
    from_input = graph.one("Gemm", x, input_weight, input_bias)
    from_hidden = graph.one("Gemm", hidden, hidden_weight, hidden_bias)
    enter, forget, candidate, leave = graph.node("Split", (graph.one("Add", from_input, from_hidden),), 4, axis=1)
    kept = graph.one("Mul", graph.one("Sigmoid", forget), cell)
    taken = graph.one("Mul", graph.one("Sigmoid", enter), graph.one("Tanh", candidate))
    next_cell = graph.one("Add", kept, taken)
    return graph.one("Mul", graph.one("Sigmoid", leave), graph.one("Tanh", next_cell)), next_cell


def _embed(graph: Graph, op: Op, inputs: list[str], tensors: list[str]) -> tuple[str, ...]:
    return (graph.one("Flatten", graph.one("Gather", tensors[0], graph.to_integer(inputs[0]), axis=0), axis=1),)


def _number(op: Op, name: str) -> float:
    return number(op.settings, name, f"op '{op.kind}'")


EMITTERS: dict[str, Emitter] = {
    "linear": _linear,
    "tanh": _plain("Tanh"),
    "relu": _plain("Relu"),
    "sigmoid": _plain("Sigmoid"),
    "silu": lambda graph, op, inputs, tensors: (silu(graph, inputs[0]),),
    "gelu": lambda graph, op, inputs, tensors: (gelu(graph, inputs[0]),),
    "elu": _plain("Elu"),
    "softplus": _plain("Softplus"),
    "leaky_relu": _leaky_relu,
    "standardize": _standardize,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "channels_first": _plain("Transpose", perm=[0, 3, 1, 2]),
    "conv2d": _conv2d,
    "flatten": _plain("Flatten", axis=1),
    "concat": _plain("Concat", axis=1),
    "add": _plain("Add"),
    "scale": _scale,
    "gru": _gru,
    "lstm": _lstm,
    "embed": _embed,
    "multiply": _plain("Mul"),
    "symlog": symlog,
    "log": _plain("Log"),
    "softmax": softmax,
    "grouped_linear": grouped_linear,
    "gate": gate,
    "latent": latent,
    "attention": attention,
    "candidate_linear": candidate_linear,
    "candidate_pool": candidate_pool,
    "conv1d": conv1d,
    "max_pool1d": partial(max_pool, 1),
    "max_pool2d": partial(max_pool, 2),
    "average_pool1d": partial(average_pool, 1),
    "average_pool2d": partial(average_pool, 2),
    "slice": slice_part,
    "reshape": reshape,
}
"""Every op of the runtime, by name."""
