"""Quantile regression: distributions of returns as quantiles (arXiv:1710.10044)."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def quantile_huber(quantiles: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """ρ(y_j − θ_i) [..., B]: the sum over quantiles θ [..., B, n] of the mean over target samples y [B, m] (eq. 10).

    Quantile i is that of the share (i + ½) / n. Errors up to 1 count quadratically.
    """
    count = quantiles.shape[-1]
    share = (torch.arange(count, device=quantiles.device) + 0.5) / count
    error = target.unsqueeze(-2) - quantiles.unsqueeze(-1)
    huber = F.huber_loss(error, torch.zeros_like(error), reduction="none")
    asymmetry = (share.unsqueeze(-1) - (error.detach() < 0).to(error.dtype)).abs()
    return (asymmetry * huber).mean(-1).sum(-1)
