"""A user's `nn.Module` as the body of a network: its traced graph becomes ops of a policy program, and travels."""

from __future__ import annotations

import copy
from typing import Any

from pydantic import Field, field_validator
from torch import fx, nn

from rl4sys.networks.config import NetworkConfig, UnsuitableNetwork, register_network
from rl4sys.networks.local_module import made_module, write_local_module
from rl4sys.networks.traced_calls import NoCounterpart, Value, written_call
from rl4sys.networks.traced_layers import layer_writer
from rl4sys.policy import ProgramBuilder


@register_network("module")
class ModuleConfig(NetworkConfig):
    """Your own `nn.Module`, built as `module(inputs, **kwargs)`: a vector of `inputs` numbers in, a vector out.

    Its graph is traced with torch.fx. If it consists of known ops, it becomes a policy program that travels to every
    client, with weights that are initialised as the algorithm initialises all networks. Any other module trains and
    acts in the process that trains, with the weights that it begins with, and cannot be exported or served.
    """

    module: str = Field(pattern=r"^[\w.]+:\w+$")
    """`python_module:Class`; the Python module may lie in the current directory. In Python, the class itself."""
    kwargs: dict[str, Any] = {}
    """Further arguments of the class."""

    @field_validator("module", mode="before")
    @classmethod
    def _name_of_class(cls, value: Any) -> Any:
        if not isinstance(value, type):
            return value
        if "." in value.__qualname__:
            raise ValueError(f"define {value.__name__} at the top of its module, where it can be found by its name")
        return f"{value.__module__}:{value.__qualname__}"

    def body(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """The ops of the traced module, or the module as one op that does not travel."""
        try:
            made = made_module(self.module, builder.shape(features)[0], self.kwargs)
        except (ImportError, AttributeError, TypeError) as error:
            raise UnsuitableNetwork(f"network.{name}.module: {self.module} cannot be made: {error}.") from error
        try:
            # On a copy: a graph that turns out to be unknown halfway leaves nothing behind.
            write_module(copy.deepcopy(builder), features, made, name)
        except Untraceable as reason:
            return write_local_module(builder, features, name, self.module, self.kwargs, str(reason))
        return write_module(builder, features, made, name)


class Untraceable(Exception):
    """A module has no counterpart in known ops."""


def write_module(builder: ProgramBuilder, features: str, module: nn.Module, name: str) -> str:
    """Add the ops of a module over a register; returns the register of its output."""
    try:
        graph = fx.symbolic_trace(module).graph
    except Exception as error:  # whatever control flow a user's module has
        raise Untraceable(f"torch.fx cannot trace it: {error}") from error
    modules, values = dict(module.named_modules()), dict[fx.Node, Value]()
    for node in graph.nodes:
        if node.op == "placeholder":
            if values:
                raise Untraceable("its forward takes several inputs; expected one vector")
            values[node] = features
        elif node.op == "output":
            return _vector(builder, node.args[0], values)
        else:
            try:
                values[node] = _written(builder, node, modules, values, name)
            except NoCounterpart as error:
                raise Untraceable(str(error)) from error
    raise Untraceable("it has no output")


def _written(
    builder: ProgramBuilder, node: fx.Node, modules: dict[str, nn.Module], values: dict[fx.Node, Value], name: str
) -> Value:
    """The value of one node of the graph."""
    if node.op == "get_attr":
        raise NoCounterpart(f"it uses the parameter '{node.target}' directly")
    if node.op != "call_module":
        return written_call(builder, node, values)
    layer, read = modules[str(node.target)], values[node.all_input_nodes[0]]
    write = layer_writer(layer)
    if write is None or not isinstance(read, str):
        raise NoCounterpart(f"{layer} has no counterpart")
    try:
        # Apart from the layers that an algorithm adds, whatever the user's layers are called.
        return write(builder, read, f"{name}.module.{node.target}")
    except (TypeError, ValueError) as error:
        raise NoCounterpart(f"{layer} cannot read shape {builder.shape(read)}: {error}") from error


def _vector(builder: ProgramBuilder, node: Any, values: dict[fx.Node, Value]) -> str:
    found = values.get(node) if isinstance(node, fx.Node) else None
    if not isinstance(found, str) or len(builder.shape(found)) != 1:
        shape = f" of shape {builder.shape(found)}" if isinstance(found, str) else ""
        raise Untraceable(f"it returns {node!r:.60}{shape}; expected a vector for each row")
    return found
