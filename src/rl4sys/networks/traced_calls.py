"""How calls of torch functions and of tensor methods, in the graph of a module, are written as ops."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import fx

from rl4sys.networks.traced_layers import leaky_relu, over_last_axes
from rl4sys.policy import ProgramBuilder


class _Rows:
    """The number of rows, which is not known when a program is written."""


ROWS = _Rows()
Value: TypeAlias = Any
"""A register by its name, a number, the number of rows, or several of them."""

_ACTIVATIONS: dict[Any, str] = {
    torch.tanh: "tanh",
    torch.relu: "relu",
    torch.sigmoid: "sigmoid",
    F.tanh: "tanh",
    F.relu: "relu",
    F.sigmoid: "sigmoid",
    F.silu: "silu",
    F.elu: "elu",
    F.softplus: "softplus",
    "tanh": "tanh",
    "relu": "relu",
    "sigmoid": "sigmoid",
}
_METHODS = (
    *("add", "sub", "mul", "div", "neg", "mean", "amax", "softmax"),
    *("size", "flatten", "reshape", "unflatten", "unsqueeze", "squeeze", "chunk", "split"),
)
_NAMES: dict[Any, str] = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.truediv: "div",
    operator.neg: "neg",
    operator.getitem: "getitem",
    torch.add: "add",
    torch.sub: "sub",
    torch.mul: "mul",
    torch.div: "div",
    torch.neg: "neg",
    torch.cat: "cat",
    torch.concat: "cat",
    torch.flatten: "flatten",
    torch.reshape: "reshape",
    torch.unsqueeze: "unsqueeze",
    torch.squeeze: "squeeze",
    torch.chunk: "chunk",
    torch.split: "split",
    torch.mean: "mean",
    torch.amax: "amax",
    torch.softmax: "softmax",
    F.softmax: "softmax",
    F.gelu: "gelu",
    F.leaky_relu: "leaky_relu",
    getattr: "getattr",
    "view": "reshape",
    **{name: name for name in _METHODS},
}
_WITHOUT_EFFECT = {"inplace": (True, False), "alpha": (1, 1.0), "beta": (1, 1.0), "threshold": (20, 20.0)}
"""Arguments of activations, and their values that every runtime assumes."""


class NoCounterpart(Exception):
    """A call that policies have no op for."""


def written_call(builder: ProgramBuilder, node: fx.Node, values: dict[fx.Node, Value]) -> Value:
    """The value of a call of a function or a method, with ops added for what it computes."""
    look_up: Callable[[fx.Node], Any] = values.__getitem__
    args: Any = fx.node.map_arg(node.args, look_up)
    kwargs: Any = fx.node.map_arg(node.kwargs, look_up)
    activation = _ACTIVATIONS.get(node.target)
    if activation is not None:
        if len(args) != 1 or any(value not in _WITHOUT_EFFECT.get(name, ()) for name, value in kwargs.items()):
            raise NoCounterpart(f"'{_called(node)}' with {kwargs} has no counterpart")
        return builder.activation(_register(args[0]), activation)
    name = _NAMES.get(node.target)
    if name is None:
        raise NoCounterpart(f"'{_called(node)}' has no counterpart")
    try:
        return _Calls(builder, node).call(name, args, kwargs)
    except (TypeError, ValueError, IndexError) as error:
        raise NoCounterpart(f"'{node}' ({name}): {error}") from error


class _Calls:
    """One call in a graph, as ops of a program."""

    def __init__(self, builder: ProgramBuilder, node: fx.Node) -> None:
        self._builder, self._node = builder, node

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
        """The value of the call of this name."""
        builder = self._builder
        match name:
            case "add" | "sub" | "mul" | "div" if len(args) == 2 and not kwargs:
                return self._arithmetic(name, *args)
            case "neg" if len(args) == 1:
                return self._scaled(args[0], -1.0, 0.0)
            case "cat":
                return self._joined(*args, **kwargs)
            case "getitem":
                return self._item(*args)
            case "getattr" if args[1] == "shape":
                return (ROWS, *builder.shape(args[0]))
            case "size":
                sizes = (ROWS, *builder.shape(args[0]))
                return sizes if len(args) == 1 else sizes[args[1]]
            case "flatten" if (args[1:], kwargs) in (((1,), {}), ((), {"start_dim": 1})):
                return builder.flat(_register(args[0]))
            case "reshape":
                return self._reshaped(args[0], args[1] if len(args) == 2 and isinstance(args[1], tuple) else args[1:])
            case "unflatten":
                return self._unflattened(*args, **kwargs)
            case "unsqueeze" | "squeeze":
                return self._with_axis(name, *args, **kwargs)
            case "chunk" | "split":
                return self._parts(name, *args, **kwargs)
            case "mean" | "amax":
                return self._over_last_axes(name, *args, **kwargs)
            case "softmax":
                return self._softmax(*args, **kwargs)
            case "gelu" if kwargs.get("approximate") == "tanh":
                return builder.activation(_register(args[0]), "gelu")
            case "leaky_relu":
                slope = args[1] if len(args) > 1 else kwargs.get("negative_slope", 0.01)
                return leaky_relu(builder, _register(args[0]), float(slope))
        raise NoCounterpart(f"'{self._node}' ({name}) with these arguments has no counterpart")

    def _arithmetic(self, name: str, first: Any, second: Any) -> Value:
        if isinstance(first, int | float) and isinstance(second, int | float):
            return {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}[name](
                first, second
            )
        if isinstance(second, int | float):
            return {
                "add": lambda: self._scaled(first, 1.0, second),
                "sub": lambda: self._scaled(first, 1.0, -second),
                "mul": lambda: self._scaled(first, second, 0.0),
                "div": lambda: self._scaled(first, 1.0 / second, 0.0),
            }[name]()
        if isinstance(first, int | float):
            if name == "sub":
                return self._scaled(second, -1.0, first)
            if name == "div":
                raise NoCounterpart("a division by a tensor has no counterpart")
            return self._arithmetic(name, second, first)
        builder, one, two = self._builder, _register(first), _register(second)
        if builder.shape(one) != builder.shape(two):
            raise NoCounterpart(
                f"'{self._node}' combines tensors of shapes {builder.shape(one)} and {builder.shape(two)}"
            )
        if name == "div":
            raise NoCounterpart("a division by a tensor has no counterpart")
        if name == "mul":
            return builder.multiply(one, two)
        return builder.op("add", (one, two if name == "add" else self._scaled(two, -1.0, 0.0)), builder.shape(one))

    def _scaled(self, register: Any, factor: float, offset: float) -> str:
        name = _register(register)
        shape = self._builder.shape(name)
        return self._builder.op("scale", (name,), shape, factor=float(factor), offset=float(offset))

    def _joined(self, parts: Any, dim: int = 0) -> str:
        registers = [_register(part) for part in parts]
        if dim not in (-1, 1) or any(len(self._builder.shape(register)) != 1 for register in registers):
            raise NoCounterpart("torch.cat joins vectors along their last axis only; flatten other tensors before")
        return self._builder.joined(registers)

    def _item(self, value: Any, index: Any) -> Value:
        if not isinstance(value, str):
            return value[index]
        builder = self._builder
        parts = index if isinstance(index, tuple) else (index,)
        if parts and parts[0] is Ellipsis:
            axes = len(builder.shape(value)) + 1
            parts = (*(slice(None) for _ in range(axes - len(parts) + 1)), *parts[1:])
        if not parts or any(not isinstance(part, slice) for part in parts) or parts[0] != slice(None):
            raise NoCounterpart(f"'{self._node}' takes other than whole rows and parts such as x[:, 2:5]")
        for axis, part in enumerate(parts[1:]):
            start, stop, step = part.indices(builder.shape(value)[axis])
            if step != 1:
                raise NoCounterpart(f"'{self._node}' takes every {step}th number")
            if (start, stop) != (0, builder.shape(value)[axis]):
                value = builder.slice(value, start, stop, axis)
        return value

    def _reshaped(self, register: Any, sizes: Any) -> str:
        name, (rows, *rest) = _register(register), tuple(sizes)
        if (rows is not ROWS and rows != -1) or any(size is ROWS for size in rest):
            raise NoCounterpart(f"'{self._node}' changes the axis of rows; keep it with -1 or x.shape[0]")
        if -1 in rest:
            if rows == -1:
                raise NoCounterpart(f"'{self._node}' leaves two axes open")
            known, total = 1, 1
            for size in rest:
                known *= size if size != -1 else 1
            for length in self._builder.shape(name):
                total *= length
            rest = [total // known if size == -1 else size for size in rest]
        return self._builder.reshape(name, rest)

    def _unflattened(self, register: Any, dim: int, sizes: Any) -> str:
        name = _register(register)
        shape = self._builder.shape(name)
        axis = self._axis(name, dim)
        return self._builder.reshape(name, (*shape[:axis], *sizes, *shape[axis + 1 :]))

    def _with_axis(self, kind: str, register: Any, dim: int) -> str:
        name = _register(register)
        shape = list(self._builder.shape(name))
        if kind == "unsqueeze":
            shape.insert(dim - 1 if dim > 0 else len(shape) + 1 + dim, 1)
        elif shape[axis := self._axis(name, dim)] == 1:
            del shape[axis]
        return self._builder.reshape(name, shape)

    def _parts(self, kind: str, register: Any, count: int, dim: int = 0) -> Value:
        name = _register(register)
        axis = self._axis(name, dim)
        length = self._builder.shape(name)[axis]
        size = -(-length // count) if kind == "chunk" else count
        starts = range(0, length, size)
        return tuple(self._builder.slice(name, start, min(start + size, length), axis) for start in starts)

    def _over_last_axes(self, kind: str, register: Any, dim: Any, keepdim: bool = False) -> str:
        name = _register(register)
        axes = sorted(self._axis(name, one) for one in (dim if isinstance(dim, tuple | list) else (dim,)))
        shape = self._builder.shape(name)
        if axes != list(range(len(shape) - len(axes), len(shape))) or (not keepdim and len(axes) == len(shape)):
            raise NoCounterpart(f"'{self._node}' is not over the last axes, with one axis left")
        found = over_last_axes(self._builder, name, len(axes), kind)
        return self._builder.reshape(found, (*shape[: -len(axes)], *(1 for _ in axes))) if keepdim else found

    def _softmax(self, register: Any, dim: int = 0, **ignored: Any) -> str:
        name = _register(register)
        if len(self._builder.shape(name)) != 1 or dim not in (-1, 1):
            raise NoCounterpart("softmax is known for vectors, along their last axis")
        return self._builder.softmax(name)

    def _axis(self, register: str, dim: int) -> int:
        """An axis counted without that of rows."""
        axes = len(self._builder.shape(register))
        axis = dim - 1 if dim > 0 else axes + dim
        if dim == 0 or not 0 <= axis < axes:
            raise NoCounterpart(f"'{self._node}' works on axis {dim}; rows are independent of each other")
        return axis


def _called(node: fx.Node) -> str:
    """The name of a method or function: a function that is built in would be shown with its address."""
    return node.target if isinstance(node.target, str) else node.target.__name__


def _register(value: Any) -> str:
    if not isinstance(value, str):
        raise NoCounterpart(f"it computes with {value!r:.60}, which is not a tensor of its graph")
    return value
