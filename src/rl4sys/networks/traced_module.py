"""A user's `nn.Module` as the body of a network: its traced graph becomes ops of a policy program, and travels."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import fx, nn

from rl4sys.config.plugins import imported_module
from rl4sys.networks.config import NetworkConfig, UnsuitableNetwork, register_network
from rl4sys.policy import ProgramBuilder

_FUNCTIONS: dict[Any, str] = {
    torch.tanh: "tanh",
    torch.relu: "relu",
    torch.sigmoid: "sigmoid",
    F.tanh: "tanh",
    F.relu: "relu",
    F.sigmoid: "sigmoid",
    F.silu: "silu",
    F.elu: "elu",
    F.softplus: "softplus",
}
_METHODS = ("tanh", "relu", "sigmoid")
_SUMS, _PRODUCTS = (operator.add, torch.add, "add"), (operator.mul, torch.mul, "mul")
_JOINS = (torch.cat, torch.concat)
_LEAKY_SLOPE = 0.01
_KNOWN = (
    "Linear, LayerNorm, Tanh, ReLU, Sigmoid, SiLU, GELU(approximate='tanh'), ELU, Softplus, LeakyReLU, Softmax(-1), "
    "Identity, +, *, and torch.cat of vectors"
)

Write: TypeAlias = Callable[[ProgramBuilder, str, str], str]
"""Adds ops over a register, tensors led by a name; returns the register of the result."""


@register_network("module")
class ModuleConfig(NetworkConfig):
    """Your own `nn.Module`, built as `module(inputs, **kwargs)`: a vector of so many numbers in, a vector out.

    Its graph is traced with torch.fx and has to consist of known ops, so that the policy travels to every client.
    Weights are initialised as the algorithm initialises all networks.
    """

    module: str = Field(pattern=r"^[\w.]+:\w+$")
    """`python_module:Class`; the Python module may lie in the current directory."""
    kwargs: dict[str, Any] = {}
    """Further arguments of the class."""

    def body(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """The ops of the traced module."""
        place, _, attribute = self.module.partition(":")
        try:
            made = getattr(imported_module(place), attribute)(builder.shape(features)[0], **self.kwargs)
        except (ImportError, AttributeError, TypeError) as error:
            raise UnsuitableNetwork(f"network.{name}.module: {self.module} cannot be made: {error}.") from error
        if not isinstance(made, nn.Module):
            raise UnsuitableNetwork(f"network.{name}.module: {self.module} made {made!r:.60}; expected an nn.Module.")
        return write_module(builder, features, made, name)


def write_module(builder: ProgramBuilder, features: str, module: nn.Module, name: str) -> str:
    """Add the ops of a module over a register; returns the register of its output."""
    try:
        graph = fx.symbolic_trace(module).graph
    except Exception as error:  # whatever control flow a user's module has
        raise _untraceable(name, f"torch.fx cannot trace it: {error}") from error
    modules, registers = dict(module.named_modules()), dict[fx.Node, str]()
    for node in graph.nodes:
        if node.op == "placeholder":
            if registers:
                raise _untraceable(name, "its forward takes several inputs; expected one vector")
            registers[node] = features
        elif node.op == "output":
            return _register(node.args[0], registers, name)
        else:
            registers[node] = _written(builder, node, modules, registers, name)
    raise _untraceable(name, "it has no output")


def _written(
    builder: ProgramBuilder, node: fx.Node, modules: dict[str, nn.Module], registers: dict[fx.Node, str], name: str
) -> str:
    """The register of one node of the graph."""
    if node.op == "call_module":
        # Apart from the layers that an algorithm adds, whatever the user's layers are called.
        tensors = f"{name}.module.{node.target}"
        write = _module_writer(modules[str(node.target)])
        if write is None:
            raise _untraceable(name, f"{modules[str(node.target)]} has no counterpart")
        return write(builder, _register(node.args[0], registers, name), tensors)
    if node.target in _JOINS and node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else 0) in (-1, 1):
        return builder.joined([_register(part, registers, name) for part in node.args[0]])  # type: ignore[union-attr]
    if node.target in (*_SUMS, *_PRODUCTS) and len(node.args) == 2 and not node.kwargs:
        first, second = (_register(part, registers, name) for part in node.args)
        if builder.shape(first) != builder.shape(second):
            raise _untraceable(name, f"'{node}' combines vectors of different sizes")
        if node.target in _PRODUCTS:
            return builder.multiply(first, second)
        return builder.op("add", (first, second), builder.shape(first))
    kind = _FUNCTIONS.get(node.target) or (node.target if node.target in _METHODS else None)
    if kind is None or len(node.args) != 1:
        raise _untraceable(name, f"'{node.target}' has no counterpart")
    return builder.activation(_register(node.args[0], registers, name), str(kind))


def _module_writer(layer: nn.Module) -> Write | None:
    """How a layer of torch is written, or None if it is not known."""
    match layer:
        case nn.Linear(bias=bias) if bias is not None:
            return lambda builder, register, name: builder.linear(register, layer.out_features, name)
        case nn.LayerNorm(eps=1e-5, elementwise_affine=True) if len(layer.normalized_shape) == 1:
            return lambda builder, register, name: builder.layer_norm(register, name)
        case nn.Softmax(dim=-1):
            return lambda builder, register, name: builder.softmax(register)
        case nn.Identity():
            return lambda builder, register, name: register
    kind = _activation(layer)
    return None if kind is None else lambda builder, register, name: builder.activation(register, kind)


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
        case nn.LeakyReLU(negative_slope=slope) if slope == _LEAKY_SLOPE:
            return "leaky_relu"
    return None


def _register(node: Any, registers: dict[fx.Node, str], name: str) -> str:
    if not isinstance(node, fx.Node) or node not in registers:
        raise _untraceable(name, f"it computes with {node!r:.60}, which is not a vector of its graph")
    return registers[node]


def _untraceable(name: str, reason: str) -> UnsuitableNetwork:
    return UnsuitableNetwork(
        f"network.{name}.module cannot become a policy program: {reason}. Policies consist of {_KNOWN}."
    )
