"""Log-probabilities and entropies of the policy heads, as functions of tensors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

from rl4sys.policy import ActionSpec, BoxAction, DiscreteAction, MultiDiscreteAction

_LOG_TWO_PI = math.log(2.0 * math.pi)
LOG_STD_LOW, LOG_STD_HIGH = -20.0, 2.0
"""Bounds of the logarithm of a squashed Gaussian's standard deviation."""


class ActionLikelihood(NamedTuple):
    """Log-probability of given actions under a policy, and the policy's entropy: [B] each."""

    log_prob: torch.Tensor
    entropy: torch.Tensor


def masked(scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """The scores with a very low number where an action is masked; finite, so that gradients are finite."""
    return scores if mask is None else torch.where(mask, scores, torch.finfo(scores.dtype).min)


def categorical(logits: torch.Tensor, action: torch.Tensor, mask: torch.Tensor | None) -> ActionLikelihood:
    """One choice of n: logits [B, n], action [B]."""
    log_probs = F.log_softmax(masked(logits, mask), dim=-1)
    log_prob = log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1)
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    return ActionLikelihood(log_prob, entropy)


def multi_categorical(
    logits: torch.Tensor, action: torch.Tensor, mask: torch.Tensor | None, sizes: tuple[int, ...]
) -> ActionLikelihood:
    """Several independent choices: logits [B, Σ sizes], action [B, k]."""
    parts = torch.split(logits, list(sizes), dim=-1)
    masks = [None] * len(sizes) if mask is None else torch.split(mask, list(sizes), dim=-1)
    each = [categorical(part, action[:, i], masks[i]) for i, part in enumerate(parts)]
    return ActionLikelihood(sum_of([e.log_prob for e in each]), sum_of([e.entropy for e in each]))


def gaussian(mean: torch.Tensor, log_std: torch.Tensor, action: torch.Tensor) -> ActionLikelihood:
    """A diagonal Gaussian: mean and action [B, d], log_std [d] or [B, d]."""
    unit = (action - mean) * torch.exp(-log_std)
    log_prob = -(0.5 * unit.square() + log_std + 0.5 * _LOG_TWO_PI).sum(-1)
    entropy = (log_std + 0.5 * (1.0 + _LOG_TWO_PI)).sum(-1).expand(log_prob.shape)
    return ActionLikelihood(log_prob, entropy)


def action_likelihood(
    space: ActionSpec,
    output: torch.Tensor,
    action: torch.Tensor,
    mask: torch.Tensor | None = None,
    log_std: torch.Tensor | None = None,
) -> ActionLikelihood:
    """The likelihood of actions of any kind, given the actor's output: logits, or means with `log_std`."""
    match space:
        case DiscreteAction():
            return categorical(output, action, mask)
        case MultiDiscreteAction(sizes=sizes):
            return multi_categorical(output, action, mask, sizes)
        case BoxAction():
            if log_std is None:
                raise ValueError("Continuous actions need log_std, the logarithm of their standard deviation.")
            return gaussian(output, log_std, action)


def tanh_gaussian(mean: torch.Tensor, log_std: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Reparameterised samples tanh(mean + std · noise) [B, d], and their log-densities [B] (arXiv:1812.05905, eq. 21).

    The logarithm of the standard deviation is kept within its bounds; the correction of the density has its stable
    form log(1 − tanh² u) = 2 (log 2 − u − softplus(−2u)).
    """
    action, log_prob = _TanhGaussian.apply(mean, log_std, noise)  # type: ignore[no-untyped-call]  # torch lacks it
    return action, log_prob


class _TanhGaussian(torch.autograd.Function):
    """The sample and its density as one step of autograd: a fifth of the calls of the op-by-op expression."""

    @staticmethod
    def forward(
        ctx: Any, mean: torch.Tensor, log_std: torch.Tensor, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        bounded = log_std.clamp(LOG_STD_LOW, LOG_STD_HIGH)
        spread = torch.exp(bounded).mul_(noise)
        raw = mean + spread
        correction = F.softplus(-2.0 * raw).add_(raw).mul_(-2.0)
        terms = noise.square().mul_(0.5).add_(bounded).add_(correction)
        log_prob = -(terms.sum(-1) + mean.shape[-1] * (0.5 * _LOG_TWO_PI + 2.0 * math.log(2.0)))
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


def sum_of(parts: list[torch.Tensor]) -> torch.Tensor:
    """The sum of tensors of one shape."""
    return torch.stack(parts).sum(0)
