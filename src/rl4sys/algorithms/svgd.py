"""Stein variational gradient descent: moves particles until they are samples of a density (arXiv:1608.04471)."""

from __future__ import annotations

import math

import torch

_NARROWEST = 1e-6
"""The least bandwidth, for particles that coincide."""


def squashed_score(action: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    """∇ log p(x) of the density p(x) ∝ exp Q(tanh x) · |d tanh x / dx|, given action = tanh x and slope = ∇Q there.

    Before the tanh there are no bounds, and the second factor keeps particles from diverging; squashed samples of p
    have the density exp Q.
    """
    return slope * (1.0 - action.square()) - 2.0 * action


def stein_direction(fixed: torch.Tensor, score: torch.Tensor, updated: torch.Tensor) -> torch.Tensor:
    """φ(y) = mean over x of κ(x, y) ∇ log p(x) + ∇ₓ κ(x, y): moves `updated` towards p (eq. 8).

    For a batch of densities: fixed particles x [B, f, d], ∇ log p there [B, f, d], updated particles y [B, u, d],
    all in one space; the result is [B, u, d].
    """
    difference = fixed.unsqueeze(2) - updated.unsqueeze(1)
    distance = difference.square().sum(-1)
    width = bandwidth(distance)
    kernel = torch.exp(-distance / width)
    attraction = kernel.transpose(1, 2) @ score
    repulsion = (kernel.unsqueeze(-1) * difference).sum(1) * (-2.0 / width)
    return (attraction + repulsion) / fixed.shape[1]


def bandwidth(distance: torch.Tensor) -> torch.Tensor:
    """The bandwidth [B, 1, 1] of kernels exp(−distance/h), for squared distances [B, f, u].

    By the median, so that the kernels around one particle sum to about one, f · exp(−median/h) ≈ 1; the + 1 keeps the
    logarithm positive for a single particle.
    """
    median = distance.flatten(1).median(1).values
    return (median / math.log(distance.shape[1] + 1.0)).clamp(min=_NARROWEST)[:, None, None]
