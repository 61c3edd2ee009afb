"""Ops over vectors of several equal parts, in torch: softmax, block-diagonal products, the block gate and latents.

All of them work on the last axis, whatever axes come before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rl4sys.policy import Op
from rl4sys.policy.policy_spec import number


def parts_of(x: torch.Tensor, *shape: int) -> torch.Tensor:
    """The last axis as several; one of their lengths may be -1."""
    return x.reshape(*x.shape[:-1], *shape)


def symlog(x: torch.Tensor) -> torch.Tensor:
    """sign(x) · log(1 + |x|)."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


def softmax(op: Op, inputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Each of the setting `groups` equal parts, normalised."""
    return (torch.softmax(_parts(op, inputs[0]), -1).flatten(-2),)


def grouped_linear(op: Op, inputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """A block-diagonal product: part i of x with weight i; the results one after the other, plus a bias."""
    weight, bias = tensors
    parts = parts_of(inputs[0], weight.shape[0], weight.shape[1]).movedim(-2, 0)
    product = torch.bmm(parts.flatten(1, -2), weight).view(*parts.shape[:-1], -1)
    return (product.movedim(0, -2).flatten(-2) + bias,)


def gate(op: Op, inputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The block gate of DreamerV3: state' = u · tanh(r · c) + (1 − u) · state, with r, c and u for each group in x."""
    x, state = inputs
    groups = int(number(op.settings, "groups", "op 'gate'"))
    reset, candidate, update = parts_of(x, groups, 3, -1).unbind(-2)
    before = parts_of(state, groups, -1)
    new = torch.tanh(torch.sigmoid(reset) * candidate)
    share = torch.sigmoid(update + number(op.settings, "update_bias", "op 'gate'"))
    return ((share * new + (1.0 - share) * before).flatten(-2),)


def latent(op: Op, inputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The draws of the numpy runtime, with the gradient of the mixed probabilities (straight-through)."""
    logits, unimix = _parts(op, inputs[0]), number(op.settings, "unimix", "op 'latent'")
    with torch.no_grad():
        chosen = _drawn(logits, inputs[1], unimix) if op.settings["draw"] else logits.argmax(-1, keepdim=True)
        one_hot = torch.zeros_like(logits).expand(*chosen.shape[:-1], -1).scatter(-1, chosen, 1.0)
    if not (torch.is_grad_enabled() and logits.requires_grad):
        return (one_hot.flatten(-2),)
    probability = (1.0 - unimix) * torch.softmax(logits, -1) + unimix / logits.shape[-1]
    return ((one_hot + (probability - probability.detach())).flatten(-2),)


def _drawn(logits: torch.Tensor, uniform: torch.Tensor, unimix: float) -> torch.Tensor:
    """The first class whose cumulative probability exceeds u · total, in float64; the last if none does."""
    probability = (1.0 - unimix) * torch.softmax(logits.double(), -1) + unimix / logits.shape[-1]
    cumulative = probability.cumsum(-1)
    below = cumulative <= cumulative[..., -1:] * uniform.double().unsqueeze(-1)
    return below.sum(-1, keepdim=True).clamp_(max=logits.shape[-1] - 1)


def _parts(op: Op, x: torch.Tensor) -> torch.Tensor:
    return parts_of(x, int(number(op.settings, "groups", f"op '{op.kind}'")), -1)
