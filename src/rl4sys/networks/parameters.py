"""All parameters that one optimizer trains, in one flat vector.

Networks see views of it. So clipping, Adam and Polyak averaging are a handful of calls whatever the number of layers,
and publishing a policy is one copy of a prefix.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn

from rl4sys.policy import Tensor
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
        """Exclude these tensors from training; before networks are built over them."""
        for name in names:
            self.views[name].requires_grad_(False)

    def trained(self) -> list[torch.Tensor]:
        """The tensors that are not frozen."""
        return [view for view in self.views.values() if view.requires_grad]

    def set(self, name: str, value: torch.Tensor) -> None:
        """Overwrite a tensor."""
        with torch.no_grad():
            self.views[name].copy_(value)

    def non_finite(self) -> list[str]:
        """The names of the tensors whose gradients are not finite."""
        return [name for name, view in self.views.items() if not _is_finite(view.grad)]

    def copy(self) -> Parameters:
        """An equal set of parameters that is not trained, for target networks."""
        tensors = (Tensor(name, shape) for name, shape in self.layout.shapes)
        twin = Parameters(tensors, self.flat.device)
        twin.flat.copy_(self.flat)
        twin.freeze(*twin.views)
        return twin


class TargetCopy:
    """A copy of some tensors of `Parameters` that follows them slowly."""

    def __init__(self, source: Parameters, tensors: Iterable[Tensor]) -> None:
        self.parameters = Parameters(tensors, source.flat.device)
        self.views = self.parameters.views
        self.parameters.freeze(*self.views)
        self._own = [view.detach() for view in self.views.values()]
        self._sources = [source.views[name].detach() for name in self.views]
        self.polyak_update(1.0)

    def polyak_update(self, polyak: float) -> None:
        """Move the copy towards its source by the share `polyak`; 1 copies it."""
        torch._foreach_lerp_(self._own, self._sources, polyak)


def _is_finite(gradient: torch.Tensor | None) -> bool:
    return gradient is None or bool(torch.isfinite(gradient).all())
