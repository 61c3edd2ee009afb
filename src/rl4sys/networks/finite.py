"""NaN and Inf checks for losses and gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class NonFiniteUpdate(ArithmeticError):
    """A loss or a gradient is not finite; its optimizer has changed neither weights nor moments."""

    def __init__(self, what: str, tensors: Sequence[str] = ()) -> None:
        """`tensors` are those whose gradients are not finite."""
        super().__init__(what)
        self.tensors = tuple(tensors)


def is_finite(tensor: torch.Tensor) -> bool:
    """Whether all elements are finite."""
    return bool(torch.isfinite(tensor).all())


def describe_gradient(norm: float, tensors: Sequence[str]) -> str:
    """A sentence about a gradient whose norm is not finite."""
    if not tensors:
        return f"The norm of the gradient is {norm}, though each of its elements is finite: they are too large."
    listed = ", ".join(tensors[:4]) + (f" and {len(tensors) - 4} more" if len(tensors) > 4 else "")
    return f"The gradient is not finite in {listed}."
