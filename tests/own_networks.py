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


class History(nn.Module):
    """A convolution over a history that is stacked into one vector."""

    def __init__(self, inputs: int, frames: int = 4) -> None:
        super().__init__()
        self.frames = frames
        self.convolution = nn.Sequential(nn.Conv1d(frames, 6, 2, stride=2), nn.LeakyReLU(0.2), nn.MaxPool1d(2))
        self.last = nn.Linear(6, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frames = x.view(x.size(0), self.frames, -1)
        return self.last(self.convolution(frames - 0.5).mean(dim=-1)) / 2.0


class Scaled(nn.Module):
    """An argument that changes what a known function computes."""

    def __init__(self, inputs: int) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.elu(x, alpha=2.0)


class Sorted(nn.Module):
    """A function that is built in, and that policies have no op for."""

    def __init__(self, inputs: int) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sort(x, dim=-1)[0]


class Matrix(nn.Module):
    """It returns more than a vector for each row."""

    def __init__(self, inputs: int) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.unsqueeze(1)


class AcrossRows(nn.Module):
    """It mixes rows, which are different observations."""

    def __init__(self, inputs: int) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0)


class Spectrum(nn.Module):
    """What no policy program can compute, with a parameter of its own and a buffer."""

    def __init__(self, inputs: int, width: int = 6) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((inputs,), 0.5))
        self.register_buffer("directions", torch.randn(inputs, 4))
        self.last = nn.Linear(inputs + 4, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        waves = torch.fft.fft(x * self.scale).real
        return torch.tanh(self.last(torch.cat([waves, torch.sin(x @ self.directions)], -1)))


class Dropping(nn.Module):
    """Different results for the same rows."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(x)


class Normed(nn.Module):
    """Statistics that are no weights."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(inputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)
