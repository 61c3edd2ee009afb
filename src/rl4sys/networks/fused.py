"""A sample and a loss as one step of autograd each: a fifth of the calls of their op-by-op expressions."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

LOG_STD_LOW, LOG_STD_HIGH = -20.0, 2.0
"""Bounds of the logarithm of a squashed Gaussian's standard deviation."""


def tanh_gaussian(mean: torch.Tensor, log_std: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Reparameterised samples tanh(mean + std · noise) [B, d], and their log-densities [B] (arXiv:1812.05905, eq. 21).

    The logarithm of the standard deviation is kept within its bounds; the correction of the density has its stable
    form log(1 − tanh² u) = 2 (log 2 − u − softplus(−2u)).
    """
    action, log_prob = _TanhGaussian.apply(mean, log_std, noise)  # type: ignore[no-untyped-call]  # torch lacks it
    return action, log_prob


class _TanhGaussian(torch.autograd.Function):
    """The sample and its density."""

    @staticmethod
    def forward(
        ctx: Any, mean: torch.Tensor, log_std: torch.Tensor, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        bounded = log_std.clamp(LOG_STD_LOW, LOG_STD_HIGH)
        spread = torch.exp(bounded).mul_(noise)
        raw = mean + spread
        correction = F.softplus(-2.0 * raw).add_(raw).mul_(-2.0)
        terms = noise.square().mul_(0.5).add_(bounded).add_(correction)
        log_prob = -(terms.sum(-1) + mean.shape[-1] * (0.5 * math.log(2.0 * math.pi) + 2.0 * math.log(2.0)))
        action = torch.tanh(raw)
        ctx.save_for_backward(action, spread, log_std == bounded)
        return action, log_prob

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        action, spread, is_within = ctx.saved_tensors
        by_action, by_log_prob = gradients[0], gradients[1].unsqueeze(-1)
        # With u = mean + spread: da/du = 1 − a², d log π/du = 2a, and log π falls by one with log std itself.
        by_raw = by_action * (1.0 - action.square()) + 2.0 * by_log_prob * action
        return by_raw, (by_raw * spread - by_log_prob) * is_within, None


def squared_error(value: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """½ mean of weight · (value − target)² over rows [B], summed over members [n, B]."""
    loss: torch.Tensor = _SquaredError.apply(value, target, weight)  # type: ignore[no-untyped-call]  # torch lacks it
    return loss


class _SquaredError(torch.autograd.Function):
    """The loss of critics."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        error = value - target
        slope = error * (weight / len(weight))
        ctx.save_for_backward(slope)
        return 0.5 * torch.dot(error.flatten(), slope.flatten())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (slope,) = ctx.saved_tensors
        return slope * gradients[0], None, None
