"""The layout of tensors in the flat weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Flat: TypeAlias = npt.NDArray[np.float32]

FLOAT32 = np.dtype("<f4")
"""Little-endian on every machine: weights are hashed and sent as they are in memory."""


class LayoutMismatch(ValueError):
    """Weights do not fit a layout."""


def require_flat(flat: Flat, size: int) -> None:
    """Raise `LayoutMismatch` unless `flat` is a float32 vector of `size` values."""
    if flat.shape != (size,) or flat.dtype != FLOAT32:
        raise LayoutMismatch(
            f"Got weights of shape {flat.shape} and dtype {flat.dtype}; expected one flat float32 vector "
            f"of {size} values. Build it with Layout.flatten."
        )


@dataclass(frozen=True, slots=True, init=False)
class Layout:
    """Ordered named shapes over one flat float32 vector; each tensor starts where the one before it ends."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    size: int
    """How many floats all tensors have together."""
    _spans: Mapping[str, slice] = field(repr=False, compare=False)

    def __init__(self, shapes: Iterable[tuple[str, Sequence[int]]]) -> None:
        """Tensors are laid out in the given order."""
        ordered = tuple((name, tuple(shape)) for name, shape in shapes)
        spans: dict[str, slice] = {}
        end = 0
        for name, shape in ordered:
            if name in spans:
                raise LayoutMismatch(f"Tensor '{name}' appears twice; give each tensor a name of its own.")
            if any(length < 0 for length in shape):
                raise LayoutMismatch(f"Tensor '{name}' has shape {shape}; lengths must not be negative.")
            start, end = end, end + math.prod(shape)
            spans[name] = slice(start, end)
        object.__setattr__(self, "shapes", ordered)
        object.__setattr__(self, "size", end)
        object.__setattr__(self, "_spans", spans)

    def offset(self, name: str) -> int:
        """The index within the flat vector of the tensor's first value."""
        if name not in self._spans:
            raise LayoutMismatch(f"There is no tensor '{name}'; this layout has {list(self._spans)}.")
        return int(self._spans[name].start)

    def views(self, flat: Flat) -> dict[str, Flat]:
        """The tensors within `flat`, sharing its memory and writable only if it is."""
        require_flat(flat, self.size)
        return {name: flat[self._spans[name]].reshape(shape) for name, shape in self.shapes}

    def flatten(self, tensors: Mapping[str, npt.NDArray[Any]]) -> Flat:
        """A new flat vector with a copy of every tensor, rounded to float32."""
        missing, unknown = self._spans.keys() - tensors.keys(), tensors.keys() - self._spans.keys()
        if missing or unknown:
            raise LayoutMismatch(
                f"The tensors do not fit the layout: missing {sorted(missing)}, unknown {sorted(unknown)}. "
                f"Pass exactly {list(self._spans)}."
            )
        flat = np.empty(self.size, FLOAT32)
        for name, view in self.views(flat).items():
            tensor = tensors[name]
            if tensor.shape != view.shape:
                raise LayoutMismatch(
                    f"Tensor '{name}' has shape {tensor.shape}; expected {view.shape}. "
                    f"Reshape it, or build another layout."
                )
            np.copyto(view, tensor, casting="same_kind")
        return flat
