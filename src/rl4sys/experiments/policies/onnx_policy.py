"""A policy as an ONNX model: observations and memory in; its best action, what its head reads and its memory out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rl4sys import __version__
from rl4sys.experience import Array, Arrays
from rl4sys.experiments.policies.greedy import greedy, parameters
from rl4sys.experiments.policies.onnx_action import encoded_action
from rl4sys.experiments.policies.onnx_graph import OPSET, Graph, require_package
from rl4sys.experiments.policies.onnx_ops import EMITTERS, emit
from rl4sys.policy import (
    BoxAction,
    DiscreteAction,
    MixedAction,
    MultiDiscreteAction,
    PolicySpec,
    PortablePolicy,
    UnknownOp,
    action_array,
    layout_of,
    output_size,
)

_IR_VERSION = 8
_ROWS = "rows"
_FLOAT = 1
"""The number of float32 among the element types of ONNX."""
_NEXT = "next."


def onnx_model(spec: PolicySpec, policy: PortablePolicy) -> bytes:
    """The model of one of a policy's specs. Chance is left to the caller, who has the parameters to draw with.

    Inputs are the observations and memories by their names, [rows, …]. Outputs are `action`, each parameter of the head
    (`logits`, `mean`, `log_std`, …) and `next.NAME` for each memory. Choices are counted from 0.
    """
    best = greedy(spec)
    unknown = sorted({op.kind for op in spec.program.ops} - EMITTERS.keys())
    if unknown:
        raise UnknownOp(
            f"There is no ONNX form of the ops {unknown}; add them to rl4sys.experiments.policies.onnx_ops.EMITTERS."
        )
    graph, program = Graph(), best.program
    views = layout_of(spec.program).views(np.asarray(policy.weights, np.float32))
    used = {name for op in program.ops for name in op.tensors}
    tensors = {name: graph.constant(views[name], f"/weights/{name}") for name in views if name in used}
    registers = {array.name: array.name for array in program.inputs} | {m.name: m.name for m in program.carry}
    for array in program.inputs:
        graph.note_dtype(array.name, array.dtype)
    for op in program.ops:
        names = emit(graph, op, [registers[name] for name in op.inputs], [tensors[name] for name in op.tensors])
        registers |= zip(op.outputs, names, strict=True)
    outputs = {"action": _action(graph, best, registers)}
    if best.head.action_register is not None:
        registers[best.head.action_register] = encoded_action(graph, best.action, outputs["action"])
    outputs |= {name: registers[register] for name, register in parameters(spec).items()}
    if spec.head.kind in ("gaussian", "mixed"):
        outputs["log_std"] = graph.constant(views[spec.head.tensors[0]], "/weights/log_std of the head")
    outputs |= {f"{_NEXT}{memory.name}": registers[memory.next] for memory in program.carry}
    return _model(graph, spec, outputs, policy)


def _action(graph: Graph, spec: PolicySpec, registers: Mapping[str, str]) -> str:
    """The best action: the first of the highest scores that are allowed, or the value, squashed if it is to be."""
    scores = registers[spec.head.inputs[0]]
    if isinstance(spec.action, MixedAction):
        return _mixed_action(graph, spec.action, scores, spec.head.mask and registers[spec.head.mask])
    if spec.head.count is not None:
        places = graph.constant(np.arange(output_size(spec.action), dtype=np.float32))
        existing = graph.one("Less", places, registers[spec.head.count])
        scores = graph.one("Where", existing, scores, graph.constant(-np.inf))
    if spec.head.mask is not None:
        scores = graph.one("Where", registers[spec.head.mask], scores, graph.constant(-np.inf))
    match spec.action:
        case DiscreteAction():
            return graph.one("ArgMax", scores, axis=1, keepdims=0)
        case MultiDiscreteAction(sizes=sizes):
            return _best_choices(graph, sizes, scores)
        case BoxAction(low=low, high=high):
            match spec.head.settings.get("squash"):
                case "tanh":
                    squashed = graph.one("Tanh", scores)
                case "clip":
                    squashed = graph.one("Clip", scores, graph.constant(-1.0), graph.constant(1.0))
                case _:
                    return scores
            bottom, top, two = np.array(low, np.float32), np.array(high, np.float32), np.float32(2.0)
            scaled = graph.one("Mul", squashed, graph.constant((top - bottom) / two))
            return graph.one("Add", scaled, graph.constant((top + bottom) / two))


def _best_choices(graph: Graph, sizes: tuple[int, ...], scores: str) -> str:
    parts = graph.node("Split", (scores, graph.constant(np.array(sizes, np.int64))), len(sizes), axis=1)
    return graph.one("Concat", *(graph.one("ArgMax", part, axis=1, keepdims=1) for part in parts), axis=1)


def _mixed_action(graph: Graph, action: MixedAction, outputs: str, mask: str | None) -> str:
    split = graph.constant(np.array([action.choices, len(action.low)], np.int64))
    scores, numbers = graph.node("Split", (outputs, split), 2, axis=1)
    if mask is not None:
        scores = graph.one("Where", mask, scores, graph.constant(-np.inf))
    chosen = graph.one("Cast", _best_choices(graph, action.sizes, scores), to=_FLOAT)
    return graph.one("Concat", chosen, numbers, axis=1)


def _model(graph: Graph, spec: PolicySpec, outputs: Mapping[str, str], policy: PortablePolicy) -> bytes:
    onnx, program = require_package("onnx"), greedy(spec).program

    def described(name: str, dtype: str, shape: tuple[int | str, ...] | None) -> Any:
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return onnx.helper.make_tensor_value_info(name, kind, shape)

    inputs = [described(array.name, array.dtype, (_ROWS, *array.shape)) for array in program.inputs]
    inputs += [described(memory.name, "float32", (_ROWS, *memory.shape)) for memory in program.carry]
    taken = {value.name for value in inputs}
    clash = sorted(taken & outputs.keys())
    if clash:
        raise ValueError(f"The observations {clash} have the names of outputs of the model. Rename them to export it.")
    for name, value in outputs.items():
        graph.nodes.append(onnx.helper.make_node("Identity", [value], [name]))
    results = [
        described(name, action_array(spec.action).dtype if name == "action" else "float32", None) for name in outputs
    ]
    made = onnx.helper.make_graph(graph.nodes, "policy", inputs, results, graph.constants)
    model = onnx.helper.make_model(
        made,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
        producer_name="rl4sys",
        producer_version=__version__,
    )
    properties = {"spec": spec.to_json(), "version": policy.version, "steps": policy.steps, "sha256": policy.sha256}
    onnx.helper.set_model_props(model, {f"rl4sys.{name}": str(value) for name, value in properties.items()})
    # With the shapes of all outputs, which only the nodes imply.
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model)
    encoded: bytes = model.SerializeToString()
    return encoded


class OnnxPolicy:
    """Runs a model with onnxruntime, on one thread."""

    def __init__(self, model: bytes) -> None:
        runtime = require_package("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._inputs = [value.name for value in self._session.get_inputs()]
        self._outputs = [value.name for value in self._session.get_outputs()]
        self.properties: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)

    def run(self, observation: Arrays, carry: Arrays) -> dict[str, Array]:
        """Every output by its name; of memory, what the model wants is taken."""
        given = {**observation, **carry}
        answers = self._session.run(self._outputs, {name: given[name] for name in self._inputs})
        return dict(zip(self._outputs, answers, strict=True))
