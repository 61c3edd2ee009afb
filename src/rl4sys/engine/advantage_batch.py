"""Sequences as independent steps with advantages, for on-policy algorithms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
        observation = {name: _chosen(array, rows) for name, array in self.observation.items()}
        return AdvantageBatch(observation, *(_chosen(column, rows) for column in self.columns))

    @property
    def columns(self) -> tuple[torch.Tensor, ...]:
        """Everything but the observation."""
        return self.action, self.log_prob, self.age, self.advantage, self.returns, self.value, self.weight

    def outputs(self, network: Network) -> Any:
        """The outputs of a network for all steps."""
        return network(self.observation)

    def minibatch_count(self, size: int) -> int:
        """Minibatches of `size` steps in one pass."""
        return -(-len(self) // size)

    def minibatches(self, size: int, shuffle: np.random.Generator) -> Iterator[AdvantageBatch]:
        """Every step once, in random order."""
        # Gathering once and slicing is cheaper than gathering for each minibatch.
        shuffled = self[torch.from_numpy(shuffle.permutation(len(self))).to(self.action.device)]
        for start in range(0, len(self), size):
            yield shuffled[start : start + size]


def _chosen(array: torch.Tensor, rows: slice | torch.Tensor) -> torch.Tensor:
    # Images are gathered three times faster than by an index in brackets.
    return array[rows] if isinstance(rows, slice) else array.index_select(0, rows)


def advantage_batch(batch: Sequences, critic: Network, gamma: float, gae_lambda: float) -> AdvantageBatch:
    """Evaluate the critic once on the whole batch, and compute generalized advantages."""
    device, acted = critic.optimizer.parameters.flat.device, batch.acted
    flat = {name: array.reshape(acted.size, *array.shape[2:]) for name, array in batch.observation.items()}
    with torch.no_grad():
        values = critic({name: torch.from_numpy(array).to(device) for name, array in flat.items()})
    return with_advantages(batch, values, gamma, gae_lambda)


def with_advantages(batch: Sequences, values: torch.Tensor, gamma: float, gae_lambda: float) -> AdvantageBatch:
    """The steps that were acted, with generalized advantages; `values` are those of all rows, stream by stream."""
    device, acted = values.device, batch.acted
    value = values.cpu().numpy().reshape(acted.shape)
    advantage = generalized_advantage(batch.reward, batch.discount, acted, value, gamma, gae_lambda)
    chosen = np.flatnonzero(acted)
    log_prob, ones = batch.extras["log_prob"], np.ones_like(value)
    columns = (batch.action, log_prob, batch.age, advantage, advantage + value, value, ones)

    def steps(array: Array) -> torch.Tensor:
        return torch.from_numpy(array.reshape(acted.size, *array.shape[2:])[chosen]).to(device)

    return AdvantageBatch({name: steps(array) for name, array in batch.observation.items()}, *map(steps, columns))


def generalized_advantage(
    reward: Array, discount: Array, acted: Array, value: Array, gamma: float, gae_lambda: float
) -> Array:
    """λ-weighted advantages [B, L], zero where no action was taken (arXiv:1506.02438, eq. 16).

    Row t+1 is what followed row t, so bootstrapping needs no special cases: a truncated episode is followed by its
    true final observation, which is not acted and so cuts the trace; a terminated one has discount 0. Where
    steps are discounted by time, `discount` holds that and gamma is 1.
    """
    step_discount, trace = np.float32(gamma), np.float32(gamma * gae_lambda)
    # Time first: each step of the recursion is one contiguous row over all streams.
    reward, discount, acted, value = (np.ascontiguousarray(a.T) for a in (reward, discount, acted, value))
    following = np.concatenate([value[1:], np.zeros_like(value[:1])])
    # Reuse `delta` as the result: row t needs only itself and the finished row t+1.
    delta = (reward + step_discount * discount * following - value) * acted
    keep = np.zeros_like(delta)
    # Of two acted steps the first has not terminated its episode: without time its discount is 1.
    keep[:-1] = trace * discount[:-1] * (acted[:-1] & acted[1:])
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
