"""Initial parameters, drawn on the CPU from a named generator, so that they are equal on every device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import nn

from rl4sys.networks.parameters import Parameters

Initializer: TypeAlias = Callable[[Parameters], None]
"""Draws the initial values of parameters."""


def orthogonal(parameters: Parameters, gains: Mapping[str, float], generator: torch.Generator) -> None:
    """Orthogonal matrices and zero biases; gain √2 unless `gains` names the layer ("actor.action": 0.01).

    The gates of a recurrent layer are columns of one matrix, which is orthogonal as a whole, with gain 1.
    """
    with torch.no_grad():
        for name, view in parameters.views.items():
            layer, _, part = name.rpartition(".")
            if _is_drawn(part):
                gain = gains.get(layer, math.sqrt(2.0) if part in ("weight", "kernel") else 1.0)
                # The blocks of a grouped layer are matrices of their own.
                for block in view if view.ndim == 3 and part != "kernel" else (view,):
                    block.copy_(nn.init.orthogonal_(torch.empty(block.shape), gain, generator=generator))
            elif part in ("gain", "scale"):
                view.fill_(1.0)
        _remember(parameters)


def uniform_fan_in(parameters: Parameters, generator: torch.Generator) -> None:
    """Weights and biases of a layer uniform within ±1/√(number of inputs); norms start as the identity."""
    with torch.no_grad():
        for name, view in parameters.views.items():
            layer, _, part = name.rpartition(".")
            weight = f"{layer}.{part.removesuffix('bias').removesuffix('weight')}weight"
            drawn = weight if weight in parameters.views else f"{layer}.kernel"
            if part in ("gain", "scale"):
                view.fill_(1.0)
            elif (_is_drawn(part) or part.endswith("bias")) and drawn in parameters.views:
                bound = 1.0 / math.sqrt(_fan_in(drawn, parameters.views[drawn]))
                view.copy_(torch.empty(view.shape).uniform_(-bound, bound, generator=generator))
        _remember(parameters)


def _remember(parameters: Parameters) -> None:
    """Start with gates that keep most of a memory: 1 is added to the bias of forget (LSTM) and update gates (GRU).

    Without it a memory halves with every step, and what was seen long ago gives hardly a gradient.
    """
    for name, view in parameters.views.items():
        layer, _, part = name.rpartition(".")
        if part == "hidden_weight":
            units = view.shape[0]
            parameters.views[f"{layer}.input_bias"][units : 2 * units] += 1.0


def truncated_normal(parameters: Parameters, gains: Mapping[str, float], generator: torch.Generator) -> None:
    """Normal weights, cut at two deviations, of variance 1 / (number of inputs), zero biases; 0 where a gain is 0."""
    with torch.no_grad():
        for name, view in parameters.views.items():
            layer, _, part = name.rpartition(".")
            if _is_drawn(part):
                # Cutting the tails lowers the deviation to 0.88 of what it was.
                deviation = gains.get(layer, 1.0) / math.sqrt(_fan_in(name, view)) / 0.8796
                values = torch.empty(view.shape)
                if deviation:
                    nn.init.trunc_normal_(values, 0.0, deviation, -2 * deviation, 2 * deviation, generator=generator)
                view.copy_(values if deviation else torch.zeros(view.shape))
            elif part in ("gain", "scale"):
                view.fill_(1.0)


def _is_drawn(part: str) -> bool:
    """Whether the part of a layer is a matrix or the kernel of a convolution."""
    return part.endswith("weight") or part == "kernel"


def _fan_in(name: str, weight: torch.Tensor) -> int:
    """Inputs of one unit: matrices are [in, out], grouped ones [groups, in, out], kernels [out, in, …]."""
    return weight[0].numel() if weight.ndim == 4 or name.endswith(".kernel") else weight.shape[-2]
