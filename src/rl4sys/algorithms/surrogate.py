"""The two losses of PPO (arXiv:1707.06347)."""

from __future__ import annotations

import torch


def clipped_surrogate(
    log_ratio: torch.Tensor, advantage: torch.Tensor, weight: torch.Tensor, clip_ratio: float
) -> torch.Tensor:
    """−E[w · min(r·A, clip(r, 1 ± ε)·A)] (eq. 7), with w correcting for the age of the data."""
    ratio = torch.exp(log_ratio)
    clipped = torch.clamp(ratio, 1.0 - clip_ratio, 1.0 + clip_ratio)
    return -(weight * torch.minimum(ratio * advantage, clipped * advantage)).mean()


def squared_error(
    value: torch.Tensor, outcome: torch.Tensor, old: torch.Tensor, clip_value: float | None
) -> torch.Tensor:
    """Half the mean squared error; with a clip, the worse of the moved and the held-back prediction."""
    error = (value - outcome).square()
    if clip_value is not None:
        held_back = old + torch.clamp(value - old, -clip_value, clip_value)
        error = torch.maximum(error, (held_back - outcome).square())
    return 0.5 * error.mean()
