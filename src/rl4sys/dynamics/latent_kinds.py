"""The latents of an RSSM by kind: how a layer's outputs become a distribution, and a distribution a draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F

from rl4sys.dynamics.latents import UNIMIX, divergence, drawn, probabilities
from rl4sys.policy import ProgramBuilder

MIN_STD = 0.1
"""The least standard deviation of a Gaussian latent (arXiv:1811.04551, appendix A)."""
_CHANCE = "rssm.chance"
_SMALLEST = 1e-7
"""Uniform numbers this close to 0 or 1 are moved away from it, where the inverse of the CDF is infinite."""


class Latents(Protocol):
    """Latents of one kind."""

    @property
    def size(self) -> int:
        """Numbers in z."""

    @property
    def outputs(self) -> int:
        """Outputs of the layer that predicts a distribution."""

    def distribution(self, outputs: torch.Tensor) -> torch.Tensor:
        """Outputs [..., outputs] as a distribution [..., latents, numbers]."""

    def drawn(self, distribution: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
        """Draws [..., size] by inverse CDF from uniform numbers [..., latents], with a gradient."""

    def divergence(self, posterior: torch.Tensor, prior: torch.Tensor) -> torch.Tensor:
        """KL(posterior ‖ prior) [...], summed over latents."""

    def write(self, builder: ProgramBuilder, outputs: str, *, draw: bool) -> str:
        """Outputs to a draw as ops, or to the most likely z."""


@dataclass(frozen=True, slots=True)
class CategoricalLatents:
    """Groups of classes, as one-hots (arXiv:2301.04104)."""

    groups: int
    classes: int

    @property
    def size(self) -> int:
        return self.groups * self.classes

    @property
    def outputs(self) -> int:
        return self.size

    def distribution(self, outputs: torch.Tensor) -> torch.Tensor:
        return probabilities(outputs, self.classes)

    def drawn(self, distribution: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
        return drawn(distribution, uniform)

    def divergence(self, posterior: torch.Tensor, prior: torch.Tensor) -> torch.Tensor:
        return divergence(posterior, prior)

    def write(self, builder: ProgramBuilder, outputs: str, *, draw: bool) -> str:
        inputs = (outputs, builder.chance(_CHANCE, self.groups, "uniform")) if draw else (outputs,)
        return builder.op("latent", inputs, (self.size,), (), groups=self.groups, unimix=UNIMIX, draw=draw)


@dataclass(frozen=True, slots=True)
class GaussianLatents:
    """Independent normal variables (arXiv:1811.04551). A distribution has a mean and a deviation for each of them."""

    size: int

    @property
    def outputs(self) -> int:
        return 2 * self.size

    def distribution(self, outputs: torch.Tensor) -> torch.Tensor:
        mean, spread = outputs.chunk(2, -1)
        return torch.stack([mean, F.softplus(spread) + MIN_STD], -1)

    def drawn(self, distribution: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
        mean, std = distribution.unbind(-1)
        normal: torch.Tensor = torch.special.ndtri(uniform.clamp(_SMALLEST, 1.0 - _SMALLEST))
        return mean + std * normal

    def divergence(self, posterior: torch.Tensor, prior: torch.Tensor) -> torch.Tensor:
        (mean, std), (prior_mean, prior_std) = posterior.unbind(-1), prior.unbind(-1)
        distance = std.square() + (mean - prior_mean).square()
        return (torch.log(prior_std / std) + distance / (2.0 * prior_std.square()) - 0.5).sum(-1)

    def write(self, builder: ProgramBuilder, outputs: str, *, draw: bool) -> str:
        shape = (self.size,)
        mean = builder.op("slice", (outputs,), shape, (), axis=0, start=0, stop=self.size)
        if not draw:
            return mean
        spread = builder.op("slice", (outputs,), shape, (), axis=0, start=self.size, stop=2 * self.size)
        std = builder.op("scale", (builder.op("softplus", (spread,), shape),), shape, factor=1.0, offset=MIN_STD)
        noise = builder.op("multiply", (std, builder.chance(_CHANCE, self.size, "normal")), shape)
        return builder.op("add", (mean, noise), shape)
