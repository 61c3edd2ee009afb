"""Numbers that are none: found before they reach a weight, and traced to the tensor that they came from."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class NonFiniteUpdate(ArithmeticError):
    """A loss or a gradient is not finite; no weight and no moment of the optimizer has taken it in."""

    def __init__(self, what: str, tensors: Sequence[str] = ()) -> None:
        """`tensors` says where: the tensors whose gradients are not finite."""
        super().__init__(what)
        self.tensors = tuple(tensors)


def is_finite(tensor: torch.Tensor) -> bool:
    """Whether every number is one."""
    return bool(torch.isfinite(tensor).all())


def describe_gradient(norm: float, tensors: Sequence[str]) -> str:
    """What is wrong with a gradient, as far as its norm and its tensors tell."""
    if not tensors:
        return f"The norm of the gradient is {norm}, though each of its numbers is finite: they are too large."
    listed = ", ".join(tensors[:4]) + (f" and {len(tensors) - 4} more" if len(tensors) > 4 else "")
    return f"The gradient is not finite in {listed}."
