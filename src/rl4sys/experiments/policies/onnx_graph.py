"""A graph of ONNX nodes as it is built."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from rl4sys.experience import Array

OPSET = 17
"""The oldest that has layer normalisation, so that older runtimes can read it too."""


class OnnxUnavailable(RuntimeError):
    """The packages for ONNX are not installed."""


def require_package(name: str) -> Any:
    """A package of the extra, or `OnnxUnavailable`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise OnnxUnavailable(
            f"ONNX needs the package '{name}'. Install it with: pip install 'rl4sys[onnx]'"
        ) from error


class Graph:
    """Nodes and constants as they are added; values are known by names that are given once."""

    def __init__(self) -> None:
        self._onnx = require_package("onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._not_float: set[str] = set()
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._count = 0

    def node(self, kind: str, inputs: tuple[str, ...], outputs: int = 1, **attributes: Any) -> tuple[str, ...]:
        """Add a node; the names of its results."""
        names = tuple(self._unused() for _ in range(outputs))
        self.nodes.append(self._onnx.helper.make_node(kind, inputs, names, **attributes))
        return names

    def one(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with a single result."""
        return self.node(kind, inputs, **attributes)[0]

    def constant(self, value: Array | float, name: str | None = None) -> str:
        """An array that is part of the graph; numbers are float32."""
        name = name or self._unused()
        array = np.asarray(value, np.float32) if not isinstance(value, np.ndarray) else value
        self.constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        self._shapes[name] = array.shape
        return name

    def shape(self, constant: str) -> tuple[int, ...]:
        """The shape of a constant."""
        return self._shapes[constant]

    def reshaped(self, name: str, *shape: int) -> str:
        """The value with other axes: 0 keeps the length of an axis, and -1 is what is left."""
        return self.one("Reshape", name, self.constant(np.array(shape, np.int64)))

    def cast(self, name: str, kind: str) -> str:
        """The value as another type, such as DOUBLE."""
        return self.one("Cast", name, to=self._onnx.TensorProto.DataType.Value(kind))

    def note_dtype(self, name: str, dtype: str) -> None:
        """Remember a value that is not float32."""
        if dtype != "float32":
            self._not_float.add(name)

    def is_float(self, name: str) -> bool:
        """Whether a value is float32."""
        return name not in self._not_float

    def to_float(self, name: str) -> str:
        """The value as float32."""
        return name if self.is_float(name) else self.cast(name, "FLOAT")

    def to_integer(self, name: str) -> str:
        """The value as int64."""
        return self.cast(name, "INT64")

    def _unused(self) -> str:
        # No observation, memory or tensor begins with a slash and a number.
        self._count += 1
        return f"/{self._count}"
