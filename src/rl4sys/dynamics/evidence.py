"""Sequences as a world model reads them: every row with the action before it, and the reward that it brought."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from rl4sys.experience import Sequences
from rl4sys.networks import TensorMap
from rl4sys.policy import ActionSpec, action_vectors


@dataclass(frozen=True, slots=True)
class Evidence:
    """Rows [B, L, …]; slicing takes some of the B."""

    observation: TensorMap
    previous_action: torch.Tensor
    """[B, L, a]: the action that led here, as networks see it; zeros at the start of an episode."""
    reward: torch.Tensor
    """[B, L]: what it brought."""
    continues: torch.Tensor
    """[B, L]: 0 where the episode terminated here, else 1."""
    is_first: torch.Tensor
    is_last: torch.Tensor
    """[B, L] bool: whether no action followed here, because the episode ended."""
    weight: torch.Tensor
    """[B, L]: 1 for rows to learn from; 0 for those before which too little is known."""

    def __len__(self) -> int:
        return len(self.reward)

    def __getitem__(self, rows: slice) -> Evidence:
        observation = {name: array[rows] for name, array in self.observation.items()}
        columns = self.previous_action, self.reward, self.continues, self.is_first, self.is_last, self.weight
        return Evidence(observation, *(column[rows] for column in columns))


def evidence(batch: Sequences, action: ActionSpec, context: int, device: torch.device) -> Evidence:
    """Shift actions, rewards and terminations by one row, so that they stand where their effect is observed.

    A sequence that starts in the middle of an episode is not learned from in its first `context` rows (at least one),
    where the model, which starts from zeros, cannot know what happened before.
    """
    led_here = np.zeros_like(batch.acted)
    led_here[:, 1:] = batch.acted[:, :-1] & ~batch.is_first[:, 1:]
    before = action_vectors(action, batch.action)
    previous_action = np.zeros_like(before)
    previous_action[:, 1:] = before[:, :-1]
    previous_action *= led_here[..., None]
    reward, continues = np.zeros_like(batch.reward), np.ones_like(batch.discount)
    reward[:, 1:] = batch.reward[:, :-1] * led_here[:, 1:]
    continues[:, 1:] = np.where(led_here[:, 1:], batch.discount[:, :-1], 1.0)
    since_first = np.maximum.accumulate(batch.is_first, axis=1)
    weight = since_first.copy()
    weight[:, max(1, context) :] = True
    is_last = ~batch.acted
    columns = previous_action, reward, continues, batch.is_first, is_last, weight.astype(np.float32)
    tensors = [torch.from_numpy(np.ascontiguousarray(column)).to(device) for column in columns]
    return Evidence({n: torch.from_numpy(array).to(device) for n, array in batch.observation.items()}, *tensors)
