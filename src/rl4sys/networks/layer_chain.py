"""Chains of fully connected layers, either layer by layer or as one step of autograd with its own backward pass.

Autograd allocates every intermediate result and keeps a node for it. In a fused chain hidden layers lie in buffers that
are reused, gradients are added straight to where the optimizer reads them, and gradients that are not needed (of frozen
weights, of observations) are not computed. That pays for ensembles and wide layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakSet

import torch
from torch.autograd.function import once_differentiable

Registers = dict[str, torch.Tensor]
"""The values of a program by name, while it runs."""
FUSED = ("relu", "tanh")
"""Activations whose derivative follows from their result."""
_NARROW = 32
"""Products with at most this many columns are several times faster transposed: (wᵀ · xᵀ)ᵀ."""
_NARROW_STACKED = 16
"""The same for batched products of several members."""


class Layer(NamedTuple):
    """x · weight + bias, optionally with an activation. With members both tensors have a leading axis for them."""

    weight: torch.Tensor
    bias: torch.Tensor
    activation: str | None


class BufferPool:
    """Memory for hidden layers, reused from update to update; networks that take turns may share one."""

    def __init__(self) -> None:
        self._free: dict[tuple[int, ...], list[torch.Tensor]] = {}
        _POOLS.add(self)

    def take(self, shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
        """An array of this shape with arbitrary contents, which no one else uses until it is given back."""
        free = self._free.get(shape)
        return free.pop() if free else like.new_empty(shape)

    def give(self, arrays: Iterable[torch.Tensor]) -> None:
        """Return arrays for reuse."""
        for array in arrays:
            self._free.setdefault(array.shape, []).append(array)

    def release(self) -> None:
        """Free all memory that is not in use."""
        self._free.clear()


_POOLS: WeakSet[BufferPool] = WeakSet()


def release_buffers() -> None:
    """Free the unused memory of all pools, for when memory is short."""
    for pool in _POOLS:
        pool.release()


class LayerChain:
    """Layers in sequence over rows [B, …] or, with members, [n, B, …], and heads that all read the last of them.

    If it is fused, a result is differentiated once.
    """

    def __init__(self, layers: Sequence[Layer], heads: Sequence[Layer], pool: BufferPool, *, fused: bool) -> None:
        every = (*layers, *heads)
        self._plain = None if fused else (layers, heads)
        self._tensors = [tensor for layer in every for tensor in (layer.weight, layer.bias)]
        self._is_stacked = every[0].weight.ndim == 3
        self._trains = any(tensor.requires_grad for tensor in self._tensors)
        self._layers, self._heads = (
            [_PreparedLayer(layer) for layer in layers],
            [_PreparedLayer(head) for head in heads],
        )
        self._first = (*self._layers, *self._heads)[0]
        self._pool = pool
        self._multiply = torch.bmm if self._is_stacked else torch.mm
        self._add_product = torch.baddbmm if self._is_stacked else torch.addmm

    def __call__(self, parts: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """The results of all heads for concatenated inputs: [B, i₁], [B, i₂], … or with a leading axis of members."""
        if self._plain is not None:
            return self._layer_by_layer(*self._plain, parts)
        if torch.is_grad_enabled() and (self._trains or any(part.requires_grad for part in parts)):
            results: Sequence[torch.Tensor] = _ChainFunction.apply(self, len(parts), *parts, *self._tensors)  # type: ignore[no-untyped-call]  # torch does not annotate it
            return results
        with torch.no_grad():
            inputs, results = self.run(parts)
            self.release(inputs)
            return results

    def _layer_by_layer(
        self, layers: Sequence[Layer], heads: Sequence[Layer], parts: Sequence[torch.Tensor]
    ) -> Sequence[torch.Tensor]:
        x = self._joined(parts)
        for layer in layers:
            x = self._plain_layer(x, layer)
        return [self._plain_layer(x, head) for head in heads]

    def _plain_layer(self, x: torch.Tensor, layer: Layer) -> torch.Tensor:
        weight, bias, activation = layer
        x = x @ weight + bias.unsqueeze(1) if self._is_stacked else torch.addmm(bias, x, weight)
        if activation is None:
            return x
        return torch.relu(x) if activation == "relu" else torch.tanh(x)

    def run(self, parts: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], tuple[torch.Tensor, ...]]:
        """The input of every layer, all but the first in buffers of the pool, and the results; autograd must be off."""
        x = self._joined(parts)
        rows, inputs = x.shape[-2], [x]
        for layer in self._layers:
            out = self._pool.take((*layer.members, rows, layer.width), x)
            self._add_product(layer.bias, inputs[-1], layer.weight, out=out)
            inputs.append(layer.activate(out))
        return inputs, tuple(head.activate(head.result(inputs[-1])) for head in self._heads)

    def _joined(self, parts: Sequence[torch.Tensor]) -> torch.Tensor:
        members = self._first.members
        if self._is_stacked and len(parts) > 1 and any(part.ndim == 3 for part in parts):
            parts = [part if part.ndim == 3 else part.expand(*members, *part.shape) for part in parts]
        x = parts[0] if len(parts) == 1 else torch.cat(tuple(parts), -1)
        return x.expand(*members, *x.shape) if self._is_stacked and x.ndim == 2 else x

    def differentiate(
        self,
        inputs: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
        gradients: Sequence[torch.Tensor],
        parts: Sequence[tuple[int, int, bool]],
    ) -> list[torch.Tensor | None]:
        """Add to the gradients of the weights; returns those of the parts: (number of axes, width, whether needed)."""
        gradient, is_borrowed = self._through_heads(inputs, results, gradients)
        for place in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[place]
            if layer.activation is not None:
                _DERIVATIVES[layer.activation](gradient, inputs[place + 1], gradient)
            if layer.trains:
                layer.add_gradients(inputs[place], gradient)
            if place > 0:
                out = self._pool.take(inputs[place].shape, gradient)
                self._multiply(gradient, layer.transposed, out=out)
                self._pool.give([gradient])
                gradient = out
        found: list[torch.Tensor | None] = []
        first = 0
        for axes, width, is_needed in parts:
            found.append(self._part_gradient(gradient, first, first + width, axes == 2) if is_needed else None)
            first += width
        if is_borrowed:
            self._pool.give([gradient])
        return found

    def _through_heads(
        self, inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor, bool]:
        """The gradient of the last layer's result, in a buffer of the pool; without layers, that of the head's sum."""
        total: torch.Tensor | None = None
        for head, result, gradient in zip(self._heads, results, gradients, strict=True):
            if head.activation is not None:
                gradient = _DERIVATIVES[head.activation](gradient, result, torch.empty_like(result))
            if head.trains:
                head.add_gradients(inputs[-1], gradient)
            if not self._layers:
                return gradient, False
            if total is None:
                total = self._pool.take(inputs[-1].shape, gradient)
                # From one value to many an outer product is cheaper than a matrix product.
                multiply = torch.mul if head.width == 1 else self._multiply
                multiply(gradient, head.transposed, out=total)
            elif self._is_stacked:
                total.baddbmm_(gradient, head.transposed)
            else:
                total.addmm_(gradient, head.transposed)
        assert total is not None
        return total, True

    def _part_gradient(self, gradient: torch.Tensor, first: int, last: int, is_shared: bool) -> torch.Tensor:
        """The gradient of the inputs from column `first` to `last`, summed over members that share the input."""
        found = torch.matmul(self._first.weight[..., first:last, :], gradient.transpose(-1, -2))
        return (found.sum(0) if self._is_stacked and is_shared else found).transpose(-1, -2)

    def release(self, inputs: Sequence[torch.Tensor]) -> None:
        """Give back the buffers of a run."""
        self._pool.give(inputs[1:])


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A chain between registers of a program."""

    chain: LayerChain
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __call__(self, registers: Registers) -> None:
        """Run it."""
        registers.update(zip(self.outputs, self.chain([registers[name] for name in self.inputs]), strict=True))


class _PreparedLayer:
    """A layer with the views that both passes need, made once: the memory of parameters never moves."""

    def __init__(self, layer: Layer) -> None:
        self.members, self.width = tuple(layer.weight.shape[:-2]), layer.weight.shape[-1]
        self.weight, self.bias = layer.weight.detach(), layer.bias.detach()
        if self.members:
            self.bias = self.bias.unsqueeze(1)
        self.transposed = self.weight.transpose(-1, -2)
        self._is_narrow = self.width <= (_NARROW_STACKED if self.members else _NARROW)
        self.activation = layer.activation
        self.trains = layer.weight.requires_grad and layer.bias.requires_grad
        if self.trains and (layer.weight.grad is None or layer.bias.grad is None):
            raise ValueError("A chain trains tensors of `Parameters`, which have their gradients from the start.")
        self._weight_gradient, self._bias_gradient = layer.weight.grad, layer.bias.grad

    def activate(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the activation in place."""
        if self.activation == "relu":
            return x.clamp_min_(0.0)
        return x.tanh_() if self.activation == "tanh" else x

    def result(self, x: torch.Tensor) -> torch.Tensor:
        """x · weight + bias in new memory; that of a narrow layer is laid out by columns."""
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


class _ChainFunction(torch.autograd.Function):
    """A chain as one step of autograd."""

    @staticmethod
    def forward(ctx: Any, chain: LayerChain, count: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        inputs, results = chain.run(tensors[:count])
        ctx.chain, ctx.hidden = chain, inputs
        ctx.parts = [(part.ndim, part.shape[-1]) for part in tensors[:count]]
        ctx.save_for_backward(inputs[0], *results)
        return results

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        if ctx.hidden is None:
            raise RuntimeError("A loss was differentiated twice; the buffers of its network are already in use again.")
        _, *results = ctx.saved_tensors
        needed = ctx.needs_input_grad[2 : 2 + len(ctx.parts)]
        parts = [(*part, is_needed) for part, is_needed in zip(ctx.parts, needed, strict=True)]
        found = ctx.chain.differentiate(ctx.hidden, results, gradients, parts)
        ctx.chain.release(ctx.hidden)
        ctx.hidden = None
        # The gradients of the weights are in place already.
        return (None, None, *found, *(None for _ in ctx.needs_input_grad[2 + len(parts) :]))


def _relu_derivative(gradient: torch.Tensor, result: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    torch.ops.aten.threshold_backward.grad_input(gradient, result, 0.0, grad_input=out)
    return out


def _tanh_derivative(gradient: torch.Tensor, result: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    torch.ops.aten.tanh_backward.grad_input(gradient, result, grad_input=out)
    return out


_DERIVATIVES: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "relu": _relu_derivative,
    "tanh": _tanh_derivative,
}
