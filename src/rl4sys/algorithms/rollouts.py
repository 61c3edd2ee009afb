"""What PPO learns from: rows of recent experience, shuffled into minibatches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from rl4sys.experience import Array


@dataclass(frozen=True, slots=True)
class Rollout:
    """The acted rows of a batch, flat: [N, …]."""

    observation: dict[str, torch.Tensor]
    action: torch.Tensor
    columns: torch.Tensor
    """[N, 5]: proximal log-probability, importance weight, advantage, return, earlier value."""

    def shuffled(self, order: Array, size: int) -> Iterator[Rollout]:
        """Minibatches in this order. Gathering once and slicing is cheaper than gathering for each."""
        index = torch.from_numpy(order).to(self.action.device)
        observation = {name: array[index] for name, array in self.observation.items()}
        action, columns = self.action[index], self.columns[index]
        for start in range(0, len(order), size):
            part = slice(start, start + size)
            yield Rollout({name: a[part] for name, a in observation.items()}, action[part], columns[part])

    def rows(self, part: slice | None) -> Rollout:
        """Some rows, or all."""
        if part is None:
            return self
        observation = {name: array[part] for name, array in self.observation.items()}
        return Rollout(observation, self.action[part], self.columns[part])
