"""Modules as users write them."""

from __future__ import annotations

import torch
from torch import nn


class Residual(nn.Module):
    """Two layers with a skip connection and a gate."""

    def __init__(self, inputs: int, width: int = 8) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(inputs, width), nn.LayerNorm(width), nn.SiLU())
        self.second = nn.Linear(width, width)
        self.gate = nn.Linear(inputs, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x)
        hidden = hidden + torch.relu(self.second(hidden))
        return torch.cat([hidden * self.gate(x).sigmoid(), x], dim=-1)


class Branching(nn.Module):
    """What no graph can hold."""

    def __init__(self, inputs: int) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


class Unknown(nn.Module):
    """An op that policies do not have."""

    def __init__(self, inputs: int) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(x).real
