"""Chains of fully connected layers, with their backward pass written out.

Autograd makes every intermediate result anew and keeps books about it. Here hidden layers lie in buffers that are used
again, gradients go straight to where the optimizer reads them, and what nobody asks for (gradients of frozen weights,
of observations) is not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakSet

import torch

FUSED = ("relu", "tanh")
"""Activations whose derivative follows from their result."""
_NARROW = 32
"""Products with at most this many columns are several times faster the other way round: (wᵀ · xᵀ)ᵀ."""
_NARROW_TOGETHER = 16
"""The same for the products of several members in one call."""


class Layer(NamedTuple):
    """x · weight + bias, then perhaps an activation. With several members both tensors have a leading axis for them."""

    weight: torch.Tensor
    bias: torch.Tensor
    activation: str | None


class Workspace:
    """Memory for hidden layers and their gradients, shared by chains that take turns: what is used again is near."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[str, int, tuple[int, ...]], torch.Tensor] = {}
        _WORKSPACES.add(self)

    def array(self, use: str, number: int, shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
        """The array of this use, number and shape; its numbers are whatever was left there."""
        found = self._arrays.get((use, number, shape))
        if found is None:
            found = self._arrays[use, number, shape] = like.new_empty(shape)
        return found

    def release(self) -> None:
        """Let go of all memory; what is needed is taken anew."""
        self._arrays.clear()


_WORKSPACES: WeakSet[Workspace] = WeakSet()


def release_workspaces() -> None:
    """Let go of the memory of all workspaces: when there is too little, what is kept for later is in the way."""
    for workspace in _WORKSPACES:
        workspace.release()


class Chain:
    """Layers one after the other, over rows [B, …] or, with several members, [n, B, …].

    A result is valid, and can be differentiated, until another chain of the same workspace runs: autograd notices, and
    raises, if that comes too late. A last layer without an activation has memory of its own, and stays valid.
    """

    def __init__(self, layers: Sequence[Layer], workspace: Workspace) -> None:
        self._tensors = [tensor for layer in layers for tensor in (layer.weight, layer.bias)]
        self._is_stacked = layers[0].weight.ndim == 3
        self._trains = any(tensor.requires_grad for tensor in self._tensors)
        self._layers = [_PreparedLayer(layer, trains=self._trains) for layer in layers]
        self._hidden = len(layers) - (layers[-1].activation is None)
        self._workspace = workspace
        self._multiply = torch.bmm if self._is_stacked else torch.mm

    def __call__(self, parts: Sequence[torch.Tensor]) -> torch.Tensor:
        """The result for inputs that stand side by side: parts [B, i₁], [B, i₂], … or with a leading member axis."""
        if torch.is_grad_enabled() and (self._trains or any(part.requires_grad for part in parts)):
            result: torch.Tensor = _Differentiable.apply(self, len(parts), *parts, *self._tensors)  # type: ignore[no-untyped-call]  # torch does not annotate it
            return result
        with torch.no_grad():
            return self.run(parts)[-1].detach()

    def run(self, parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The input and the result of every layer; autograd must be off."""
        members = self._layers[0].members
        if self._is_stacked and len(parts) > 1 and any(part.ndim == 3 for part in parts):
            parts = [part if part.ndim == 3 else part.expand(*members, *part.shape) for part in parts]
        x = parts[0] if len(parts) == 1 else torch.cat(tuple(parts), -1)
        rows = x.shape[-2]
        if self._is_stacked and x.ndim == 2:
            x = x.expand(*members, *x.shape)
        values = [x]
        add_product = torch.baddbmm if self._is_stacked else torch.addmm
        for place, layer in enumerate(self._layers[: self._hidden]):
            out = self._workspace.array("result", place, (*layer.members, rows, layer.width), x)
            add_product(layer.bias, values[-1], layer.weight, out=out)
            if layer.activation == "relu":
                out.clamp_min_(0.0)
            elif layer.activation == "tanh":
                out.tanh_()
            values.append(out)
        if self._hidden < len(self._layers):
            values.append(self._layers[-1].result(values[-1]))
        return values

    def _backward(self, values: Sequence[torch.Tensor], gradient: torch.Tensor) -> torch.Tensor:
        """From the gradient of the result: adds to those of the weights; returns that of the first layer's sum."""
        rows = gradient.shape[-2]
        for place in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[place]
            if layer.activation is not None:
                own = self._workspace.array("gradient", place % 2, (*layer.members, rows, layer.width), gradient)
                _DERIVATIVES[layer.activation](gradient, values[place + 1], own)
                gradient = own
            if self._trains:
                layer.add_gradients(values[place], gradient)
            if place > 0:
                shape = (*layer.members, rows, self._layers[place - 1].width)
                out = self._workspace.array("gradient", (place - 1) % 2, shape, gradient)
                # From one value to many is no product worth the name.
                multiply = torch.mul if layer.width == 1 else self._multiply
                gradient = multiply(gradient, layer.transposed, out=out)
        return gradient

    def differentiate(
        self,
        values: Sequence[torch.Tensor],
        gradient: torch.Tensor,
        parts: Sequence[torch.Tensor],
        needed: Sequence[bool],
    ) -> list[torch.Tensor | None]:
        """From the gradient of the result: adds to those of the weights, returns those of the parts that are needed."""
        summed = self._backward(values, gradient)
        found: list[torch.Tensor | None] = []
        first = 0
        for part, is_needed in zip(parts, needed, strict=True):
            last = first + part.shape[-1]
            found.append(self._part_gradient(summed, first, last, part.ndim == 2) if is_needed else None)
            first = last
        return found

    def _part_gradient(self, gradient: torch.Tensor, first: int, last: int, is_shared: bool) -> torch.Tensor:
        """The gradient of the inputs from column `first` to `last`, summed over members where they share the input."""
        found = torch.matmul(self._layers[0].weight[..., first:last, :], gradient.transpose(-1, -2))
        return (found.sum(0) if self._is_stacked and is_shared else found).transpose(-1, -2)


class _PreparedLayer:
    """A layer as the passes want it: views made once, since the memory of parameters never moves."""

    def __init__(self, layer: Layer, *, trains: bool) -> None:
        self.members, self.width = tuple(layer.weight.shape[:-2]), layer.weight.shape[-1]
        self.weight, self.bias = layer.weight.detach(), layer.bias.detach()
        if self.members:
            self.bias = self.bias.unsqueeze(1)
        self.transposed = self.weight.transpose(-1, -2)
        self._is_narrow = self.width <= (_NARROW_TOGETHER if self.members else _NARROW)
        self.activation = layer.activation
        if trains and (layer.weight.grad is None or layer.bias.grad is None):
            raise ValueError("A chain trains tensors of `Parameters`, whose gradients exist from the beginning.")
        self._weight_gradient, self._bias_gradient = layer.weight.grad, layer.bias.grad

    def result(self, x: torch.Tensor) -> torch.Tensor:
        """What the layer makes of its input, in memory of its own. That of a narrow one lies column by column."""
        if not self._is_narrow:
            return torch.baddbmm(self.bias, x, self.weight) if self.members else torch.addmm(self.bias, x, self.weight)
        turned = x.new_empty((*self.members, self.width, x.shape[-2]))
        if self.members:
            torch.baddbmm(self.bias.transpose(1, 2), self.transposed, x.transpose(1, 2), out=turned)
        else:
            torch.addmm(self.bias, x, self.weight, out=turned.t())
        return turned.transpose(-1, -2)

    def add_gradients(self, x: torch.Tensor, gradient: torch.Tensor) -> None:
        """Add to the gradients of weight and bias, given the input of the layer and the gradient of its sum."""
        assert self._weight_gradient is not None
        assert self._bias_gradient is not None
        if self.members and self.width == 1:
            self._weight_gradient.transpose(1, 2).baddbmm_(gradient.transpose(1, 2), x)
        elif self.members:
            self._weight_gradient.baddbmm_(x.transpose(1, 2), gradient)
        elif self._is_narrow:
            self._weight_gradient.add_(torch.mm(gradient.t(), x).t())
        else:
            self._weight_gradient.addmm_(x.t(), gradient)
        self._bias_gradient.add_(gradient.sum(-2))


class _Differentiable(torch.autograd.Function):
    """A chain as one step of autograd."""

    @staticmethod
    def forward(ctx: Any, chain: Chain, count: int, *tensors: torch.Tensor) -> torch.Tensor:
        ctx.chain, ctx.count = chain, count
        values = chain.run(tensors[:count])
        ctx.save_for_backward(*tensors[:count], *values)
        return values[-1].detach()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        parts, values = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        needed = ctx.needs_input_grad[2 : 2 + ctx.count]
        found = ctx.chain.differentiate(values, gradients[0], parts, needed)
        # Gradients of weights are where they belong already.
        return (None, None, *found, *(None for _ in ctx.needs_input_grad[2 + ctx.count :]))


def _relu_derivative(gradient: torch.Tensor, result: torch.Tensor, out: torch.Tensor) -> None:
    torch.ops.aten.threshold_backward.grad_input(gradient, result, 0.0, grad_input=out)


def _tanh_derivative(gradient: torch.Tensor, result: torch.Tensor, out: torch.Tensor) -> None:
    torch.ops.aten.tanh_backward.grad_input(gradient, result, grad_input=out)


_DERIVATIVES: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]] = {
    "relu": _relu_derivative,
    "tanh": _tanh_derivative,
}
