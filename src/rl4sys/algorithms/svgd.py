"""Stein variational gradient descent: where particles must move to become samples of a density (arXiv:1608.04471)."""

from __future__ import annotations

import math

import torch

_NARROWEST = 1e-6
"""The least bandwidth, for particles that have all met in one place."""


def squashed_score(action: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    """∇ log p(x) of the density p(x) ∝ exp Q(tanh x) · |d tanh x / dx|, given action = tanh x and slope = ∇Q there.

    In the space before the tanh there are no bounds, and the second factor keeps the particles from running away; the
    samples of p, squashed, have the density exp Q.
    """
    return slope * (1.0 - action.square()) - 2.0 * action


def stein_direction(fixed: torch.Tensor, score: torch.Tensor, updated: torch.Tensor) -> torch.Tensor:
    """φ(y) = mean over x of κ(x, y) ∇ log p(x) + ∇ₓ κ(x, y): the steepest way of `updated` towards p (eq. 8).

    For a batch of densities: particles x that stay [B, f, d], ∇ log p there [B, f, d], particles y that move [B, u, d],
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

    By the median, so that the kernels around one particle sum to about one: f · exp(−median/h) = 1.
    """
    median = distance.flatten(1).median(1).values
    return (median / math.log(distance.shape[1] + 1.0)).clamp(min=_NARROWEST)[:, None, None]
