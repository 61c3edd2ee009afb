"""Log-probabilities and entropies of the policy heads, as functions of tensors."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F

from rl4sys.policy import ActionSpec, BoxAction, DiscreteAction, MixedAction, MultiDiscreteAction

_LOG_TWO_PI = math.log(2.0 * math.pi)


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
            return gaussian(output, _required(log_std), action)
        case MixedAction(sizes=sizes, choices=choices):
            parts = len(sizes)
            chosen = multi_categorical(output[:, :choices], action[:, :parts].long(), mask, sizes)
            numbers = gaussian(output[:, choices:], _required(log_std), action[:, parts:])
            return ActionLikelihood(chosen.log_prob + numbers.log_prob, chosen.entropy + numbers.entropy)


def _required(log_std: torch.Tensor | None) -> torch.Tensor:
    if log_std is None:
        raise ValueError("Continuous actions need log_std, the logarithm of their standard deviation.")
    return log_std


def sum_of(parts: list[torch.Tensor]) -> torch.Tensor:
    """The sum of tensors of one shape."""
    return torch.stack(parts).sum(0)
