"""LaProp (arXiv:2002.04839) with adaptive gradient clipping (arXiv:2102.06171), as DreamerV3 trains."""

from __future__ import annotations

from collections.abc import Sequence

import torch

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-20
_SMALLEST_NORM = 1e-3


@torch.no_grad()
def laprop_step(
    flat: torch.Tensor, gradient: torch.Tensor, momentum: torch.Tensor, square: torch.Tensor, steps: int, lr: float
) -> None:
    """One step in place: unlike in Adam the gradient is normalised first, and then averaged.

    `steps` counts this one. A gradient that suddenly grows cannot make a step longer than usual.
    """
    square.mul_(_BETA2).addcmul_(gradient, gradient, value=1.0 - _BETA2)
    deviation = (square / (1.0 - _BETA2**steps)).sqrt_().add_(_EPSILON)
    momentum.mul_(_BETA1).addcdiv_(gradient, deviation, value=1.0 - _BETA1)
    flat.add_(momentum, alpha=-lr / (1.0 - _BETA1**steps))


@torch.no_grad()
def clip_adaptively(parameters: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor], clip: float) -> None:
    """Scale each tensor's gradient down, in place, to at most `clip` times the norm of the tensor itself."""
    limits = torch.stack(torch._foreach_norm(list(parameters))).clamp_(min=_SMALLEST_NORM).mul_(clip)
    norms = torch.stack(torch._foreach_norm(list(gradients)))
    factors = (limits / norms.clamp_(min=1e-30)).clamp_(max=1.0)
    torch._foreach_mul_(list(gradients), list(factors.unbind()))
