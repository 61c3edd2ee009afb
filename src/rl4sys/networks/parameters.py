"""All numbers that one optimizer trains, in one flat vector.

Modules see views into it. So clipping, Adam and averaging are a handful of calls whatever the number of
layers, and publishing a policy is one copy of a prefix.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn

from rl4sys.policy import Tensor
from rl4sys.state import State, require
from rl4sys.weights import Layout


class Parameters:
    """Named tensors over one flat float32 vector, with their gradients over another."""

    def __init__(self, tensors: Iterable[Tensor], device: torch.device) -> None:
        unique: dict[str, Tensor] = {}
        for tensor in tensors:
            if unique.setdefault(tensor.name, tensor) != tensor:
                raise ValueError(
                    f"Tensor '{tensor.name}' has shape {unique[tensor.name].shape} in one program and "
                    f"{tensor.shape} in another; give it two names, or one shape."
                )
        self.layout = Layout((tensor.name, tensor.shape) for tensor in unique.values())
        self.flat = torch.zeros(self.layout.size, dtype=torch.float32, device=device)
        self.gradient = torch.zeros_like(self.flat)
        self.views = {name: nn.Parameter(self._slice(self.flat, name, tensor.shape)) for name, tensor in unique.items()}
        for name, view in self.views.items():
            view.grad = self._slice(self.gradient, name, view.shape)

    def _slice(self, flat: torch.Tensor, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        offset = self.layout.offset(name)
        return flat[offset : offset + math.prod(shape)].view(shape)

    def freeze(self, *names: str) -> None:
        """Keep these tensors out of training: statistics, ε, and whatever else is set and not learned."""
        for name in names:
            self.views[name].requires_grad_(False)

    def set(self, name: str, value: torch.Tensor) -> None:
        """Write a tensor that is not learned."""
        with torch.no_grad():
            self.views[name].copy_(value)

    def copy(self) -> Parameters:
        """An equal set of parameters that nothing trains, for targets."""
        tensors = (Tensor(name, shape) for name, shape in self.layout.shapes)
        twin = Parameters(tensors, self.flat.device)
        twin.flat.copy_(self.flat)
        twin.freeze(*twin.views)
        return twin


class FlatAdam:
    """Adam over the flat vector of `Parameters`, with the gradient's norm clipped (arXiv:1412.6980)."""

    def __init__(self, parameters: Parameters, *, lr: float, epsilon: float, max_norm: float | None) -> None:
        self._parameters = parameters
        self._lr = lr
        self._max_norm = max_norm
        target = nn.Parameter(parameters.flat)
        target.grad = parameters.gradient
        self._adam = torch.optim.Adam([target], lr=lr, eps=epsilon, fused=True)

    def step(self, loss: torch.Tensor, lr: float | None = None) -> torch.Tensor:
        """Descend once along the gradient of the loss; returns the gradient's norm before clipping."""
        gradient = self._parameters.gradient
        gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
        norm: torch.Tensor = torch.linalg.vector_norm(gradient)
        if self._max_norm is not None:
            gradient.mul_(torch.clamp(self._max_norm / (norm + 1e-6), max=1.0))
        self._adam.param_groups[0]["lr"] = self._lr if lr is None else lr
        self._adam.step()
        return norm

    def state(self) -> State:
        """The step counter and both moments."""
        entry = self._entry()
        return {
            "step": float(entry["step"]),
            "first_moment": entry["exp_avg"].cpu().numpy().copy(),
            "second_moment": entry["exp_avg_sq"].cpu().numpy().copy(),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "step", "first_moment", "second_moment")
        entry = self._entry()
        entry["step"].fill_(state["step"])
        entry["exp_avg"].copy_(torch.from_numpy(state["first_moment"]))
        entry["exp_avg_sq"].copy_(torch.from_numpy(state["second_moment"]))

    def _entry(self) -> dict[str, torch.Tensor]:
        (target,) = self._adam.param_groups[0]["params"]
        entry: dict[str, torch.Tensor] = self._adam.state[target]
        if not entry:
            device = self._parameters.flat.device
            entry["step"] = torch.zeros((), dtype=torch.float32, device=device)
            entry["exp_avg"] = torch.zeros_like(self._parameters.flat)
            entry["exp_avg_sq"] = torch.zeros_like(self._parameters.flat)
        return entry
