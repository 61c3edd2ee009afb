"""The likelihood that imitation maximises: that of given actions, with a floor under exploration."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from rl4sys.networks.distributions import gaussian, masked, sum_of
from rl4sys.policy import ActionSpec, BoxAction, DiscreteAction, MixedAction, MultiDiscreteAction


def imitation_log_prob(
    space: ActionSpec,
    output: torch.Tensor,
    action: torch.Tensor,
    mask: torch.Tensor | None,
    log_std: torch.Tensor | None,
    floor: float,
) -> torch.Tensor:
    """[B] for actions of any kind, given the actor's output: logits, or means with `log_std`."""
    match space:
        case DiscreteAction():
            return smoothed_log_prob(output, action, mask, floor)
        case MultiDiscreteAction(sizes=sizes):
            return _choices(output, action, mask, sizes, floor)
        case BoxAction():
            return _numbers(space, output, action, log_std, floor)
        case MixedAction(sizes=sizes, box=box, choices=choices):
            parts = len(sizes)
            chosen = _choices(output[:, :choices], action[:, :parts].long(), mask, sizes, floor)
            return chosen + _numbers(box, output[:, choices:], action[:, parts:], log_std, floor)


def smoothed_log_prob(
    logits: torch.Tensor, action: torch.Tensor, mask: torch.Tensor | None, floor: float
) -> torch.Tensor:
    """(1 − floor) log π(a) + floor · mean of log π over the k allowed choices − what falls below the floor, squared.

    Its expectation is largest where each allowed choice keeps the probability floor / k; the last term enforces that
    where the network cannot fit it. An action that the mask excludes counts for nothing. Logits [B, n], action [B].
    """
    log_probs = F.log_softmax(masked(logits, mask), dim=-1)
    chosen = log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1)
    count = logits.new_full((1, 1), logits.shape[-1])
    if mask is not None:
        chosen = torch.where(mask.gather(-1, action.unsqueeze(-1)).squeeze(-1), chosen, 0.0)
        # Before the square: an infinite value would make its gradient 0 · ∞.
        log_probs, count = torch.where(mask, log_probs, 0.0), mask.sum(-1, keepdim=True).clamp(min=1)
    if not floor:
        return chosen
    lack = (math.log(floor) - count.log() - log_probs).clamp(min=0.0).square()
    return (1.0 - floor) * chosen + ((floor * log_probs - lack) / count).sum(-1)


def lowest_log_std(space: BoxAction | MixedAction, floor: float) -> torch.Tensor:
    """[d]: the logarithm of the smallest standard deviation, `floor` times half the range; −∞ without a floor."""
    with np.errstate(over="ignore"):
        half = (np.array(space.high, np.float32) - np.array(space.low, np.float32)) / np.float32(2.0)
    half = np.where(np.isfinite(half) & (half > 0), half, np.float32(1.0))
    return torch.from_numpy(np.log(half)) + (math.log(floor) if floor else -math.inf)


def _choices(
    logits: torch.Tensor, action: torch.Tensor, mask: torch.Tensor | None, sizes: tuple[int, ...], floor: float
) -> torch.Tensor:
    parts = torch.split(logits, list(sizes), dim=-1)
    masks = [None] * len(sizes) if mask is None else torch.split(mask, list(sizes), dim=-1)
    return sum_of([smoothed_log_prob(part, action[:, i], masks[i], floor) for i, part in enumerate(parts)])


def _numbers(
    space: BoxAction, mean: torch.Tensor, action: torch.Tensor, log_std: torch.Tensor | None, floor: float
) -> torch.Tensor:
    if log_std is None:
        raise ValueError("Continuous actions need log_std, the logarithm of their standard deviation.")
    return gaussian(mean, torch.maximum(log_std, lowest_log_std(space, floor).to(log_std)), action).log_prob
