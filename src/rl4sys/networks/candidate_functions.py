"""The ops over candidates in torch, and chains of them that compute existing rows only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from rl4sys.networks.layer_chain import Registers
from rl4sys.policy import Op

Activate = Callable[[torch.Tensor], torch.Tensor]
ACTIVATIONS: Mapping[str, Activate] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "elu": F.elu,
    "softplus": F.softplus,
}


def exists(count: torch.Tensor, most: int) -> torch.Tensor:
    """Which of `most` rows are candidates: [B, most] from counts [B, 1]."""
    return torch.arange(most, device=count.device) < count


def candidate_linear(
    op: Op, inputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """activation((row, context) · w + b) for each candidate [B, N, …]; zeros for the others."""
    rows, count, *context = inputs
    (weight, bias), width = tensors, rows.shape[-1]
    total = rows @ weight[:width] + bias
    if context:
        total = total + (context[0] @ weight[width:]).unsqueeze(-2)
    return (torch.where(exists(count, rows.shape[-2]).unsqueeze(-1), _activation(op)(total), 0.0),)


def candidate_pool(op: Op, inputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The mean and the maximum over the candidates, and log k; zeros if there are none."""
    rows, count = inputs
    real = exists(count, rows.shape[-2])
    found = real.sum(-1, keepdim=True)
    mean = torch.where(real.unsqueeze(-1), rows, 0.0).sum(-2) / found.clamp(min=1)
    highest = torch.where(real.unsqueeze(-1), rows, -torch.inf).amax(-2)
    highest = torch.where(found > 0, highest, 0.0)
    log_count = found.clamp(min=1).to(rows.dtype).log()
    return (torch.cat([mean, highest, log_count.expand(*mean.shape[:-1], 1)], dim=-1),)


@dataclass(frozen=True, slots=True)
class CandidateLayer:
    """A layer that all candidates share. Weights may have a leading axis of members."""

    weight: torch.Tensor
    bias: torch.Tensor
    activate: Activate


class CandidateChain:
    """Layers one after the other over the rows that exist, side by side as one matrix: absent ones cost nothing."""

    def __init__(self, ops: Sequence[Op], tensors: Mapping[str, torch.Tensor]) -> None:
        self._inputs, self._output = ops[0].inputs, ops[-1].outputs[0]
        self._layers = [CandidateLayer(tensors[op.tensors[0]], tensors[op.tensors[1]], _activation(op)) for op in ops]

    def __call__(self, registers: Registers) -> None:
        """Run the layers."""
        rows, count, *context = (registers[name] for name in self._inputs)
        batch, most = rows.shape[:2]
        owner, place = exists(count, most).nonzero(as_tuple=True)
        x = rows[owner, place]
        for number, layer in enumerate(self._layers):
            width = x.shape[-1]
            total = x @ layer.weight[..., :width, :] + layer.bias.unsqueeze(-2)
            if number == 0 and context:
                total = total + (context[0] @ layer.weight[..., width:, :])[..., owner, :]
            x = layer.activate(total)
        result = x.new_zeros((*x.shape[:-2], batch, most, x.shape[-1]))
        result[..., owner, place, :] = x
        registers[self._output] = result


def _activation(op: Op) -> Activate:
    kind = op.settings.get("activation")
    if kind == "none":
        return lambda x: x
    if kind not in ACTIVATIONS:
        known = ", ".join(("none", *ACTIVATIONS))
        raise ValueError(f"Setting 'activation' of op '{op.kind}' is {kind!r}; expected {known}.")
    return ACTIVATIONS[str(kind)]
