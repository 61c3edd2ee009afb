"""What a network is evaluated on: rows, or streams with memory; slicing takes some of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from rl4sys.networks.program import TensorMap


@dataclass(frozen=True, slots=True)
class RowInputs:
    """Independent rows [B, …]."""

    arrays: TensorMap

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def __getitem__(self, rows: slice) -> RowInputs:
        return RowInputs({name: array[rows] for name, array in self.arrays.items()})


@dataclass(frozen=True, slots=True)
class StreamInputs:
    """Streams [B, L, …] with the starts of episodes and memory before their first rows."""

    arrays: TensorMap
    is_first: torch.Tensor
    carry: TensorMap
    """Memory [B, …], or [n, B, …] if members have memory of their own."""
    memory_axes: Mapping[str, int]
    """How many axes each memory of one row has."""

    def __len__(self) -> int:
        return len(self.is_first)

    def __getitem__(self, streams: slice) -> StreamInputs:
        arrays = {name: array[streams] for name, array in self.arrays.items()}
        chosen = torch.arange(len(self), device=self.is_first.device)[streams]
        carry = {name: memory.index_select(-1 - self.memory_axes[name], chosen) for name, memory in self.carry.items()}
        return StreamInputs(arrays, self.is_first[streams], carry, self.memory_axes)
