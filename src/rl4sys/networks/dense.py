"""Chains of fully connected layers, with their backward pass written out.

Autograd makes every intermediate result anew, and on wide layers the fresh memory costs more than the arithmetic on it.
Here hidden layers lie in buffers that are used again, gradients go straight to where the optimizer reads them, and what
nobody asks for (gradients of frozen weights, of observations) is not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

FUSED = ("relu", "tanh")
"""Activations whose derivative follows from their result."""


class Layer(NamedTuple):
    """x · weight + bias, then perhaps an activation. With several members both tensors have a leading axis for them."""

    weight: torch.Tensor
    bias: torch.Tensor
    activation: str | None


class Chain:
    """Layers one after the other, over rows [B, …] or, with several members, [n, B, …].

    A result is valid until the next call, and may be differentiated once: the buffers are this chain's own. Autograd
    notices, and raises, if a result is differentiated too late.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = list(layers)
        self._tensors = [tensor for layer in layers for tensor in (layer.weight, layer.bias)]
        self._is_stacked = self._layers[0].weight.ndim == 3
        self._buffers: dict[int, _Buffers] = {}

    def __call__(self, parts: Sequence[torch.Tensor]) -> torch.Tensor:
        """The result for inputs that stand side by side: parts [B, i₁], [B, i₂], … or with a leading member axis."""
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (*parts, *self._tensors)):
            result: torch.Tensor = _Differentiable.apply(self, len(parts), *parts, *self._tensors)  # type: ignore[no-untyped-call]  # torch does not annotate it
            return result
        return self.run(parts)[-1].detach()

    def run(self, parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The input and the result of every layer."""
        members = self._layers[0].weight.shape[0]
        if len({part.ndim for part in parts}) > 1:
            parts = [part if part.ndim == 3 else part.expand(members, *part.shape) for part in parts]
        x = parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=-1)
        rows = x.shape[-2]
        if self._is_stacked and x.ndim == 2:
            x = x.expand(members, *x.shape)
        values, buffers = [x], self._buffers_for(rows, x)
        for layer, out in zip(self._layers, buffers.results, strict=True):
            if self._is_stacked:
                torch.baddbmm(layer.bias.unsqueeze(1), values[-1], layer.weight, out=out)
            else:
                torch.addmm(layer.bias, values[-1], layer.weight, out=out)
            if layer.activation == "relu":
                out.clamp_min_(0.0)
            elif layer.activation == "tanh":
                out.tanh_()
            values.append(out)
        return values

    def backward(
        self, values: Sequence[torch.Tensor], gradient: torch.Tensor, *, trains: bool, into_input: bool
    ) -> Any:
        """From the gradient of the result: adds to those of the weights; returns that of the first layer's sum."""
        multiply = torch.bmm if self._is_stacked else torch.mm
        results = self._buffers[gradient.shape[-2]].gradients
        for place in range(len(self._layers) - 1, -1, -1):
            layer, own = self._layers[place], results[place]
            if layer.activation is not None:
                _DERIVATIVES[layer.activation](gradient, values[place + 1], own)
                gradient = own
            if trains:
                self._add_gradients(layer, values[place], gradient)
            if place > 0:
                gradient = multiply(gradient, layer.weight.transpose(-1, -2), out=results[place - 1])
        return gradient if into_input else None

    def part_gradient(self, gradient: torch.Tensor, first: int, last: int, is_shared: bool) -> torch.Tensor:
        """The gradient of the inputs from column `first` to `last`, summed over members where they share the input."""
        columns = self._layers[0].weight[..., first:last, :].transpose(-1, -2)
        found = torch.matmul(gradient, columns)
        return found.sum(0) if self._is_stacked and is_shared else found

    def _add_gradients(self, layer: Layer, x: torch.Tensor, gradient: torch.Tensor) -> None:
        weight_gradient, bias_gradient = layer.weight.grad, layer.bias.grad
        if weight_gradient is None or bias_gradient is None:
            raise RuntimeError("A chain trains tensors of `Parameters`, whose gradients exist from the beginning.")
        if self._is_stacked:
            weight_gradient.baddbmm_(x.transpose(1, 2), gradient)
        else:
            weight_gradient.addmm_(x.t(), gradient)
        bias_gradient.add_(gradient.sum(-2))

    def _buffers_for(self, rows: int, like: torch.Tensor) -> _Buffers:
        buffers = self._buffers.get(rows)
        if buffers is None:
            # One size at a time: the sizes of batches rarely change.
            self._buffers = {rows: (buffers := _Buffers.allocate(self._layers, rows, like))}
        return buffers


class _Buffers(NamedTuple):
    """Results and gradients of every layer, for one number of rows."""

    results: list[torch.Tensor]
    gradients: list[torch.Tensor]

    @classmethod
    def allocate(cls, layers: Sequence[Layer], rows: int, like: torch.Tensor) -> _Buffers:
        shapes = [(*layer.weight.shape[:-2], rows, layer.weight.shape[-1]) for layer in layers]
        return cls(*([like.new_empty(shape) for shape in shapes] for _ in range(2)))


class _Differentiable(torch.autograd.Function):
    """A chain as one step of autograd."""

    @staticmethod
    def forward(ctx: Any, chain: Chain, count: int, *tensors: torch.Tensor) -> torch.Tensor:
        parts = tensors[:count]
        values = chain.run(parts)
        ctx.chain, ctx.parts = chain, [(part.shape[-1], part.ndim == 2) for part in parts]
        ctx.save_for_backward(*values)
        return values[-1].detach()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        needed = ctx.needs_input_grad[2:]
        count = len(ctx.parts)
        into_input, trains = any(needed[:count]), any(needed[count:])
        gradient = ctx.chain.backward(ctx.saved_tensors, gradients[0], trains=trains, into_input=into_input)
        found: list[torch.Tensor | None] = []
        first = 0
        for (width, is_shared), wanted in zip(ctx.parts, needed, strict=False):
            last = first + width
            found.append(ctx.chain.part_gradient(gradient, first, last, is_shared) if wanted else None)
            first = last
        # Gradients of weights are where they belong already.
        return (None, None, *found, *(None for _ in needed[count:]))


def _relu_derivative(gradient: torch.Tensor, result: torch.Tensor, out: torch.Tensor) -> None:
    torch.ops.aten.threshold_backward.grad_input(gradient, result, 0.0, grad_input=out)


def _tanh_derivative(gradient: torch.Tensor, result: torch.Tensor, out: torch.Tensor) -> None:
    torch.ops.aten.tanh_backward.grad_input(gradient, result, grad_input=out)


_DERIVATIVES: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]] = {
    "relu": _relu_derivative,
    "tanh": _tanh_derivative,
}
