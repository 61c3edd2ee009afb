"""λ-returns over predicted or recorded steps."""

from __future__ import annotations

import torch


def lambda_return(
    reward: torch.Tensor, live: torch.Tensor, value: torch.Tensor, gae_lambda: float | torch.Tensor
) -> torch.Tensor:
    """R_t = r_{t+1} + c_{t+1} ((1 − λ) v_{t+1} + λ R_{t+1}) for t < T; all inputs are [T + 1, …], time first.

    `live` is the discount times whether the episode continues. R_T is v_T. λ may be a tensor [T + 1, …]; where it is 0,
    the return does not reach beyond the next value.
    """
    blend = gae_lambda if isinstance(gae_lambda, torch.Tensor) else torch.full_like(live, gae_lambda)
    within = reward[1:] + (1.0 - blend[1:]) * live[1:] * value[1:]
    through = (live * blend)[1:]
    returns = [value[-1]]
    for step in range(len(within) - 1, -1, -1):
        returns.append(torch.addcmul(within[step], through[step], returns[-1]))
    return torch.stack(returns[:0:-1])
