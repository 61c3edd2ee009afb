"""Transitions as tensors on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rl4sys.experience import Array, Arrays, Transitions
from rl4sys.networks import Network, TensorMap
from rl4sys.policy import ActionSpec, BoxAction


@dataclass(frozen=True, slots=True)
class TensorBatch:
    """A batch of transitions [B, …]; slicing it takes some of its rows."""

    observation: TensorMap
    action: torch.Tensor
    """Continuous actions in [−1, 1], discrete ones as numbers."""
    reward: torch.Tensor
    """[B]: the discounted sum over the n steps of a transition."""
    discount: torch.Tensor
    """[B]: factor of the value of the next observation, γⁿ; 0 after a termination, never after a truncation."""
    next_observation: TensorMap
    weight: torch.Tensor
    """[B]: importance weights of prioritized replay; ones otherwise."""

    def __len__(self) -> int:
        return len(self.reward)

    def __getitem__(self, rows: slice) -> TensorBatch:
        observation, next_observation = (
            {name: array[rows] for name, array in arrays.items()}
            for arrays in (self.observation, self.next_observation)
        )
        columns = self.action[rows], self.reward[rows], self.discount[rows]
        return TensorBatch(observation, *columns, next_observation, self.weight[rows])

    def outputs(self, network: Network, *extra: torch.Tensor) -> Any:
        """The outputs of a network for the observations."""
        return network(self.observation, *extra)

    def next_outputs(self, network: Network, *extra: torch.Tensor) -> Any:
        """The outputs of a network for the next observations."""
        return network(self.next_observation, *extra)

    def next_target_outputs(self, network: Network, *extra: torch.Tensor) -> Any:
        """The outputs of a target network for the next observations."""
        return network.target(self.next_observation, *extra)

    def at_next(self, values: torch.Tensor) -> torch.Tensor:
        """From values of what `next_outputs` was computed for, those of the next observations: all of them."""
        return values

    def rows(self, values: torch.Tensor) -> torch.Tensor:
        """From values of what `outputs` was computed for, those to learn from: all of them."""
        return values

    def feedback(self, error: torch.Tensor) -> dict[str, torch.Tensor]:
        """What the buffer gets to know about the errors [B] of the rows."""
        return {"priority": error.abs()}


class TransitionTensors:
    """Makes tensors of transitions: n-step returns, and continuous actions scaled from their bounds to [−1, 1]."""

    def __init__(self, action: ActionSpec, gamma: float, device: torch.device) -> None:
        self.gamma, self._device = gamma, device
        self._middle: torch.Tensor | None = None
        if isinstance(action, BoxAction):
            low, high = np.array(action.low, np.float32), np.array(action.high, np.float32)
            with np.errstate(over="ignore", invalid="ignore"):
                middle, inverse = (high + low) / np.float32(2.0), np.float32(2.0) / (high - low)
            if np.isfinite(middle).all() and np.isfinite(inverse).all() and (inverse > 0).all():
                self._middle, self._inverse = (torch.from_numpy(array).to(device) for array in (middle, inverse))

    def __call__(self, batch: Transitions) -> TensorBatch:
        """The tensors of a batch; on the CPU they share its memory."""
        reward, discount = n_step_return(batch, self.gamma)
        return TensorBatch(
            self._tensors(batch.observation),
            self.scaled(self.tensor(batch.action)),
            self.tensor(reward),
            self.tensor(discount),
            self._tensors(batch.next_observation),
            self.tensor(batch.weight),
        )

    def scaled(self, action: torch.Tensor) -> torch.Tensor:
        """Continuous actions in [−1, 1]: one beyond the bounds was executed at the bound."""
        if self._middle is None:
            return action
        return ((action - self._middle) * self._inverse).clamp_(-1.0, 1.0)

    def tensor(self, array: Array) -> torch.Tensor:
        """An array on the device."""
        return torch.from_numpy(np.asarray(array)).to(self._device)

    def _tensors(self, arrays: Arrays) -> dict[str, torch.Tensor]:
        return {name: self.tensor(array) for name, array in arrays.items()}


def n_step_return(batch: Transitions, gamma: float) -> tuple[Array, Array]:
    """The discounted rewards of each window, and what to multiply the value that follows it with: [B] each."""
    if batch.reward.ndim == 1:
        return batch.reward, np.float32(gamma) * batch.discount
    powers = gamma ** np.arange(batch.reward.shape[1], dtype=np.float32)
    bootstrap = np.float32(gamma) ** batch.span.astype(np.float32) * batch.discount
    return batch.reward @ powers.astype(np.float32), bootstrap.astype(np.float32)
