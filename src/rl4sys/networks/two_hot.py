"""Numbers of any magnitude as distributions over fixed bins (arXiv:2301.04104, sec. "Robust predictions")."""

from __future__ import annotations

import torch

from rl4sys.networks.group_functions import symlog

__all__ = ["BINS", "TwoHot", "symexp", "symlog"]

BINS = 255
"""Bins of a two-hot distribution. Odd, so that one of them is exactly zero."""
_HALF = BINS // 2
_LARGEST = 20.0
"""The outermost bins are ±symexp(20), about ±4.9e8."""


def symexp(x: torch.Tensor) -> torch.Tensor:
    """The inverse of `symlog`."""
    return torch.sign(x) * torch.expm1(x.abs())


class TwoHot:
    """Turns logits [..., 255] into numbers, and numbers into targets for them.

    Bins are spaced by `symexp`, and stored as zero, the positive ones, then the negative ones, both from the smallest:
    bins of opposite sign are then subtracted without moving them.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype = torch.float32) -> None:
        spaced = symexp(torch.linspace(0.0, _LARGEST, _HALF + 1, dtype=torch.float64))
        self._positive = spaced.to(dtype).to(device)

    @property
    def bins(self) -> torch.Tensor:
        """The number that each logit stands for."""
        return torch.cat([self._positive, -self._positive[1:]])

    def mean(self, chances: torch.Tensor) -> torch.Tensor:
        """The expected number [...]; exactly zero for equal probabilities."""
        positive, negative = chances[..., 1 : _HALF + 1], chances[..., _HALF + 1 :]
        return (positive - negative) @ self._positive[1:]

    def predict(self, logits: torch.Tensor) -> torch.Tensor:
        """The expected number [...] of logits."""
        return self.mean(logits.softmax(-1))

    def loss(self, log_chances: torch.Tensor, *numbers: torch.Tensor) -> torch.Tensor:
        """The sum of the cross-entropies [...] to each of the numbers [...].

        A number's target is spread over the two bins around it, the nearer one having the larger share.
        """
        found = [self._target(number) for number in numbers]
        places, shares = (torch.cat(parts, -1) for parts in zip(*found, strict=True))
        return -(log_chances.gather(-1, places) * shares).sum(-1)

    def _target(self, number: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The places [..., 2] and shares [..., 2] of the two bins around numbers [...]."""
        size = number.detach().abs().clamp(max=float(self._positive[-1]))
        below = (torch.searchsorted(self._positive, size, right=True) - 1).clamp_(max=_HALF - 1)
        low, high = self._positive[below], self._positive[below + 1]
        share = (size - low) / (high - low)
        inner, outer = below, below + 1
        is_negative = number < 0
        inner = torch.where(is_negative & (inner > 0), inner + _HALF, inner)
        outer = torch.where(is_negative, outer + _HALF, outer)
        return torch.stack([inner, outer], -1), torch.stack([1.0 - share, share], -1)
