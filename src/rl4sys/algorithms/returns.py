"""Returns and advantages, as functions of arrays."""

from __future__ import annotations

import numpy as np

from rl4sys.experience import Array, Transitions


def generalized_advantage(
    reward: Array, discount: Array, acted: Array, value: Array, gamma: float, gae_lambda: float
) -> Array:
    """λ-weighted advantages [B, L], zero where nothing was acted (arXiv:1506.02438, eq. 16).

    Row t+1 is what followed row t, so bootstrapping needs no case distinction: a truncated episode is followed by its
    true final observation, which is not acted and so cuts the trace; a terminated one has discount 0.
    """
    step_discount, trace = np.float32(gamma), np.float32(gamma * gae_lambda)
    # Time first: each step of the recursion is one contiguous row over all streams.
    reward, discount, acted, value = (np.ascontiguousarray(a.T) for a in (reward, discount, acted, value))
    following = np.concatenate([value[1:], np.zeros_like(value[:1])])
    # Reuse `delta` as the result: row t needs only itself and the finished row t+1.
    delta = (reward + step_discount * discount * following - value) * acted
    keep = np.zeros_like(delta)
    keep[:-1] = trace * (acted[:-1] & acted[1:])
    for step in range(len(delta) - 2, -1, -1):
        delta[step] += keep[step] * delta[step + 1]
    return np.ascontiguousarray(delta.T)


def n_step_return(batch: Transitions, gamma: float) -> tuple[Array, Array]:
    """The discounted rewards of each window, and what to multiply the value that follows it with: [B] each."""
    if batch.reward.ndim == 1:
        return batch.reward, np.float32(gamma) * batch.discount
    powers = gamma ** np.arange(batch.reward.shape[1], dtype=np.float32)
    bootstrap = np.float32(gamma) ** batch.span.astype(np.float32) * batch.discount
    return batch.reward @ powers.astype(np.float32), bootstrap.astype(np.float32)


def explained_variance(prediction: Array, outcome: Array) -> float:
    """1 for perfect predictions, 0 for none, below 0 for worse than none."""
    # What is too large to square is told by the update itself, which is then left out.
    with np.errstate(over="ignore", invalid="ignore"):
        variance = float(np.var(outcome))
        return float("nan") if variance == 0.0 else 1.0 - float(np.var(outcome - prediction)) / variance
