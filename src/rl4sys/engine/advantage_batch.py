"""Sequences as independent steps with advantages, for on-policy algorithms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from rl4sys.experience import Array, Sequences
from rl4sys.networks import Network, TensorMap


@dataclass(frozen=True, slots=True)
class AdvantageBatch:
    """The steps of a batch that were acted [B, …]; slicing or indexing takes some of them."""

    observation: TensorMap
    action: torch.Tensor
    log_prob: torch.Tensor
    """Log-probability of the action under the policy that took it."""
    age: torch.Tensor
    """How many versions older that policy is than the newest one."""
    advantage: torch.Tensor
    returns: torch.Tensor
    """Advantage plus value: what the critic should have predicted."""
    value: torch.Tensor
    """The critic's prediction."""
    weight: torch.Tensor
    """Importance weight; ones unless an algorithm corrects for age."""

    def __len__(self) -> int:
        return len(self.action)

    def __getitem__(self, rows: slice | torch.Tensor) -> AdvantageBatch:
        observation = {name: array[rows] for name, array in self.observation.items()}
        columns = self.action, self.log_prob, self.age, self.advantage, self.returns, self.value, self.weight
        return AdvantageBatch(observation, *(column[rows] for column in columns))


def advantage_batch(batch: Sequences, critic: Network, gamma: float, gae_lambda: float) -> AdvantageBatch:
    """Evaluate the critic once on the whole batch, and compute generalized advantages."""
    device, acted = critic.optimizer.parameters.flat.device, batch.acted
    flat = {name: array.reshape(acted.size, *array.shape[2:]) for name, array in batch.observation.items()}
    with torch.no_grad():
        values = critic({name: torch.from_numpy(array).to(device) for name, array in flat.items()})
    value = values.cpu().numpy().reshape(acted.shape)
    advantage = generalized_advantage(batch.reward, batch.discount, acted, value, gamma, gae_lambda)
    chosen = np.flatnonzero(acted)
    log_prob, ones = batch.extras["log_prob"], np.ones_like(value)
    columns = (batch.action, log_prob, batch.age, advantage, advantage + value, value, ones)
    return AdvantageBatch(
        {name: torch.from_numpy(array[chosen]).to(device) for name, array in flat.items()},
        *(torch.from_numpy(column.reshape(acted.size, *column.shape[2:])[chosen]).to(device) for column in columns),
    )


def generalized_advantage(
    reward: Array, discount: Array, acted: Array, value: Array, gamma: float, gae_lambda: float
) -> Array:
    """λ-weighted advantages [B, L], zero where no action was taken (arXiv:1506.02438, eq. 16).

    Row t+1 is what followed row t, so bootstrapping needs no special cases: a truncated episode is followed by its
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


def explained_variance(prediction: torch.Tensor, returns: torch.Tensor) -> float:
    """1 for perfect predictions, 0 for a constant one, below 0 for worse than that."""
    # Numbers too large to square are reported by the update itself, which is then skipped.
    with np.errstate(over="ignore", invalid="ignore"):
        outcome = returns.cpu().numpy()
        variance = float(np.var(outcome))
        return float("nan") if variance == 0.0 else 1.0 - float(np.var(outcome - prediction.cpu().numpy())) / variance
