"""Groups of categorical latent variables: probabilities, draws, divergences."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

UNIMIX = 0.01
"""Share of the uniform distribution in every latent, so that no class becomes impossible."""


def probabilities(logits: torch.Tensor, classes: int) -> torch.Tensor:
    """Softmax within each group, mixed with 1 % of uniform: [..., groups · classes] to [..., groups, classes]."""
    softmax = logits.view(*logits.shape[:-1], -1, classes).softmax(-1)
    return softmax * (1.0 - UNIMIX) + UNIMIX / classes


def drawn_classes(chances: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Inverse-CDF draws [..., groups]: the first class whose cumulative probability exceeds the uniform number."""
    cumulative = chances.detach().cumsum(-1)
    threshold = cumulative[..., -1:] * uniform.unsqueeze(-1)
    return (cumulative <= threshold).sum(-1).clamp_(max=chances.shape[-1] - 1)


def drawn(chances: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """One-hot draws [..., groups · classes]; their gradient goes straight through to the probabilities."""
    if not (torch.is_grad_enabled() and chances.requires_grad):
        return one_hot(chances, uniform)
    result: torch.Tensor = _StraightThrough.apply(chances, uniform)  # type: ignore[no-untyped-call]  # torch lacks it
    return result


def one_hot(chances: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """The same without a gradient."""
    chosen = drawn_classes(chances, uniform).unsqueeze(-1)
    return torch.zeros_like(chances).scatter_(-1, chosen, 1.0).flatten(-2)


class _StraightThrough(torch.autograd.Function):
    """A draw that is differentiated as if it were its probabilities (arXiv:1308.3432)."""

    @staticmethod
    def forward(ctx: Any, chances: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
        ctx.shape = chances.shape
        return one_hot(chances, uniform)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return gradients[0].reshape(ctx.shape), None


def divergence(posterior: torch.Tensor, prior: torch.Tensor) -> torch.Tensor:
    """KL(posterior ‖ prior) [...], summed over groups."""
    return (posterior * (posterior.log() - prior.log())).sum((-2, -1))
