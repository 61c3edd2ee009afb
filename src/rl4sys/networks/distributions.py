"""Log-probabilities and entropies of the policy heads, as functions of tensors."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F

_LOG_TWO_PI = math.log(2.0 * math.pi)
LOG_STD_LOW, LOG_STD_HIGH = -20.0, 2.0
"""Bounds of the logarithm of a squashed Gaussian's deviation."""


class Evaluation(NamedTuple):
    """What a policy thinks of given actions: [B] each."""

    log_prob: torch.Tensor
    entropy: torch.Tensor


def masked(scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """The scores with a very low number where a choice is forbidden; finite, so that gradients are too."""
    return scores if mask is None else torch.where(mask, scores, torch.finfo(scores.dtype).min)


def categorical(logits: torch.Tensor, action: torch.Tensor, mask: torch.Tensor | None) -> Evaluation:
    """One choice of n: logits [B, n], action [B]."""
    log_probs = F.log_softmax(masked(logits, mask), dim=-1)
    log_prob = log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1)
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    return Evaluation(log_prob, entropy)


def multi_categorical(
    logits: torch.Tensor, action: torch.Tensor, mask: torch.Tensor | None, sizes: tuple[int, ...]
) -> Evaluation:
    """Several independent choices: logits [B, Σ sizes], action [B, k]."""
    parts = torch.split(logits, list(sizes), dim=-1)
    masks = [None] * len(sizes) if mask is None else torch.split(mask, list(sizes), dim=-1)
    each = [categorical(part, action[:, i], masks[i]) for i, part in enumerate(parts)]
    return Evaluation(sum_of([e.log_prob for e in each]), sum_of([e.entropy for e in each]))


def gaussian(mean: torch.Tensor, log_std: torch.Tensor, action: torch.Tensor) -> Evaluation:
    """A diagonal Gaussian: mean and action [B, d], log_std [d] or [B, d]."""
    unit = (action - mean) * torch.exp(-log_std)
    log_prob = -(0.5 * unit.square() + log_std + 0.5 * _LOG_TWO_PI).sum(-1)
    entropy = (log_std + 0.5 * (1.0 + _LOG_TWO_PI)).sum(-1).expand(log_prob.shape)
    return Evaluation(log_prob, entropy)


def tanh_gaussian_log_prob(
    mean: torch.Tensor, log_std: torch.Tensor, raw: torch.Tensor, scale: torch.Tensor
) -> torch.Tensor:
    """Log-density of scale · tanh(raw) + middle, where raw is Gaussian; the correction in its stable form."""
    unit = (raw - mean) * torch.exp(-log_std)
    base = -(0.5 * unit.square() + log_std + 0.5 * _LOG_TWO_PI)
    correction = 2.0 * (math.log(2.0) - raw - F.softplus(-2.0 * raw)) + torch.log(scale)
    return (base - correction).sum(-1)


class TanhGaussianSample(NamedTuple):
    """Samples of a squashed Gaussian, with what their gradients need: [B, d], but for `log_prob`."""

    action: torch.Tensor
    """In [−1, 1]."""
    log_prob: torch.Tensor
    """[B]: log-densities in that range."""
    log_std: torch.Tensor
    """Kept within its bounds."""
    spread: torch.Tensor
    """std · noise: how far a sample lies from the mean, before it is squashed."""

    @classmethod
    def of(cls, mean: torch.Tensor, log_std: torch.Tensor, noise: torch.Tensor) -> TanhGaussianSample:
        """tanh(mean + std · noise), with the correction of the density in its stable form."""
        log_std = log_std.clamp(LOG_STD_LOW, LOG_STD_HIGH)
        spread = torch.exp(log_std).mul_(noise)
        raw = mean + spread
        # log 2 − x − softplus(−2x), twice, is 2 log 2 − 2x − 2 softplus(−2x).
        correction = F.softplus(-2.0 * raw).add_(raw).mul_(-2.0)
        terms = noise.square().mul_(0.5).add_(log_std).add_(correction)
        log_prob = -(terms.sum(-1) + mean.shape[-1] * (0.5 * _LOG_TWO_PI + 2.0 * math.log(2.0)))
        return cls(torch.tanh(raw), log_prob, log_std, spread)


def sum_of(parts: list[torch.Tensor]) -> torch.Tensor:
    """The sum of tensors of one shape."""
    return torch.stack(parts).sum(0)
