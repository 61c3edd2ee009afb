"""A fully connected layer, RMS normalisation and SiLU as one step of autograd: a third of the calls."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

EPSILON = 1e-4
"""Added to the mean square before its root is taken."""


def normed_layer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    """silu(gain · rms_norm(x · weight + bias)) for rows [N, in]."""
    return normed(torch.addmm(bias, x, weight), gain)


def normed(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    """silu(gain · rms_norm(x)) over the last axis."""
    if torch.is_grad_enabled() and (x.requires_grad or gain.requires_grad):
        result: torch.Tensor = _Normed.apply(x, gain)  # type: ignore[no-untyped-call]  # torch lacks it
        return result
    level = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * gain
    return torch.sigmoid(level).mul_(level)


class _Normed(torch.autograd.Function):
    """Normalisation and activation."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        root = torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON)
        unit = x * root
        level = unit * gain
        slope = torch.sigmoid(level)
        ctx.save_for_backward(unit, root, gain, level, slope)
        return slope * level

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        unit, root, gain, level, slope = ctx.saved_tensors
        # silu'(l) = s + l · s · (1 − s), with s = sigmoid(l).
        by_level = gradients[0] * (slope + level * slope * (1.0 - slope))
        by_gain = (by_level * unit).flatten(0, -2).sum(0) if ctx.needs_input_grad[1] else None
        by_unit = by_level * gain
        by_x = root * (by_unit - unit * (by_unit * unit).mean(-1, keepdim=True)) if ctx.needs_input_grad[0] else None
        return by_x, by_gain
