"""Describes a policy in plain values: architecture, sizes, heads, version and hash."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl4sys.experience import ArraySpec
from rl4sys.experiments.policies.onnx_graph import require_package
from rl4sys.experiments.policies.trained_policy import TrainedPolicy
from rl4sys.policy import Head, Op, PolicySpec, noise_size


class ForeignModel(ValueError):
    """An ONNX file that rl4sys did not export."""


def describe_policy(trained: TrainedPolicy) -> dict[str, Any]:
    """Architecture, sizes, heads, normaliser, version and hash."""
    policy = trained.policy
    return {
        "policy": str(trained.origin),
        "environment": trained.environment.name if trained.environment is not None else None,
        "version": policy.version,
        "steps": policy.steps,
        "sha256": policy.sha256,
        **_architecture(policy.exploit),
        "heads": {"explore": _head(policy.explore), "exploit": _head(policy.exploit)},
        "skipped": list(trained.skipped),
    }


def describe_onnx(path: Path) -> dict[str, Any]:
    """The same about an ONNX model that was exported here, and what it takes and gives."""
    model = require_package("onnx").load(str(path))
    props = {entry.key: entry.value for entry in model.metadata_props}
    if "rl4sys.spec" not in props:
        raise ForeignModel(
            f"{path} was not exported by rl4sys; it has no description of its policy. Give one that was."
        )
    spec = PolicySpec.from_json(props["rl4sys.spec"])
    return {
        "policy": str(path),
        "environment": None,
        "version": int(props["rl4sys.version"]),
        "steps": int(props["rl4sys.steps"]),
        "sha256": props["rl4sys.sha256"],
        **_architecture(spec),
        "heads": {"head": _head(spec)},
        "onnx": {
            "opset": model.opset_import[0].version,
            "nodes": len(model.graph.node),
            "inputs": [value.name for value in model.graph.input],
            "outputs": [value.name for value in model.graph.output],
            "bytes": path.stat().st_size,
        },
        "skipped": [],
    }


def _architecture(spec: PolicySpec) -> dict[str, Any]:
    program = spec.program
    shapes = {tensor.name: tensor.shape for tensor in program.tensors}
    weights = sum(map(math.prod, shapes.values()))
    return {
        "action": _values(spec.action),
        "observation": [_array(array) for array in program.inputs],
        "normaliser": [op.inputs[0] for op in program.ops if op.kind == "standardize"],
        "memory": [{"name": memory.name, "shape": list(memory.shape)} for memory in program.carry],
        "chance": [_values(chance) for chance in program.chance],
        "ops": [_op(op, shapes) for op in program.ops],
        "tensors": [{"name": name, "shape": list(shape), "size": math.prod(shape)} for name, shape in shapes.items()],
        "weights": weights,
        "bytes": 4 * weights,
    }


def _op(op: Op, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    return {
        "kind": op.kind,
        "inputs": list(op.inputs),
        "outputs": list(op.outputs),
        "tensors": {name: list(shapes[name]) for name in op.tensors},
        "settings": dict(op.settings),
        "weights": sum(math.prod(shapes[name]) for name in op.tensors),
    }


def _head(spec: PolicySpec) -> dict[str, Any]:
    head: Head = spec.head
    return {
        "kind": head.kind,
        "inputs": list(head.inputs),
        "tensors": list(head.tensors),
        "mask": head.mask,
        "settings": dict(head.settings),
        "uniform_numbers": noise_size(spec),
    }


def _array(array: ArraySpec) -> dict[str, Any]:
    return {"name": array.name, "dtype": array.dtype, "shape": list(array.shape)}


def _values(record: Any) -> dict[str, Any]:
    """A record as JSON can hold it: infinite bounds are the texts "inf" and "-inf", as in a policy's own JSON."""
    values = dataclasses.asdict(record)
    for name, value in values.items():
        if isinstance(value, tuple):
            values[name] = [str(item) if isinstance(item, float) and math.isinf(item) else item for item in value]
    return values
