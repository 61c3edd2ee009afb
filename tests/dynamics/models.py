"""Small models with weights that are far from their initial ones."""

from __future__ import annotations

import torch

from rl4sys.dynamics import RSSM
from rl4sys.dynamics.rssm import PREVIOUS_ACTION
from rl4sys.experience import ArraySpec
from rl4sys.networks import Parameters, truncated_normal
from rl4sys.policy import Program, ProgramBuilder

SMALL = RSSM(deter=16, hidden=6, groups=3, classes=4, blocks=2, embedding=5, actions=2, update_bias=-2.0)


def acting_program(rssm: RSSM = SMALL) -> Program:
    builder = ProgramBuilder((ArraySpec("embedding", "float32", (rssm.embedding,)),))
    rssm.write_filter(builder, "embedding", draw=True)
    builder.remember(PREVIOUS_ACTION, PREVIOUS_ACTION)
    return builder.program()


def random_views(rssm: RSSM = SMALL, seed: int = 0) -> dict[str, torch.Tensor]:
    """Weights of every tensor, in float64, with gradients."""
    tensors = (*acting_program(rssm).tensors, *rssm.prior_tensors())
    parameters = Parameters(tensors, torch.device("cpu"))
    generator = torch.Generator().manual_seed(seed)
    truncated_normal(parameters, {}, generator)
    noisy = (
        (name, view + 0.3 * torch.randn(view.shape, generator=generator)) for name, view in parameters.views.items()
    )
    return {name: view.detach().double().requires_grad_() for name, view in noisy}


def sequences(rssm: RSSM = SMALL, rows: int = 3, length: int = 7, seed: int = 1) -> tuple[torch.Tensor, ...]:
    """Embeddings, previous actions, beginnings of episodes and uniform numbers."""
    generator = torch.Generator().manual_seed(seed)
    embedding = torch.randn(rows, length, rssm.embedding, generator=generator).double()
    action = torch.randn(rows, length, rssm.actions, generator=generator).double()
    is_first = torch.rand(rows, length, generator=generator) < 0.25
    return embedding, action, is_first, torch.rand(rows, length, rssm.groups, generator=generator).double()
