"""Parameters with an optimizer, and a target that follows them slowly."""

from __future__ import annotations

import torch

from rl4sys.experience import Array
from rl4sys.networks import FlatAdam, Parameters
from rl4sys.state import State, require


class Followed:
    """What critics and deterministic actors have in common."""

    def __init__(self, parameters: Parameters, lr: float, max_norm: float | None, polyak: float) -> None:
        self.parameters = parameters
        self.targets = parameters.copy()
        self.adam = FlatAdam(parameters, lr=lr, epsilon=1e-8, max_norm=max_norm)
        self._polyak = polyak

    def follow(self) -> None:
        """Move the targets a little towards the parameters."""
        self.targets.flat.lerp_(self.parameters.flat, self._polyak)

    def standardize(self, name: str, mean: Array, scale: Array) -> None:
        """Use these statistics of one observation from now on, in the targets too."""
        for parameters in (self.parameters, self.targets):
            set_statistics(parameters, name, mean, scale)

    def state(self) -> State:
        """Parameters, targets and optimizer."""
        return {
            "parameters": self.parameters.flat.cpu().numpy().copy(),
            "targets": self.targets.flat.cpu().numpy().copy(),
            "adam": self.adam.state(),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "parameters", "targets", "adam")
        self.parameters.flat.copy_(torch.from_numpy(state["parameters"]))
        self.targets.flat.copy_(torch.from_numpy(state["targets"]))
        self.adam.restore(state["adam"])


def set_statistics(parameters: Parameters, name: str, mean: Array, scale: Array) -> None:
    """Write the statistics of one observation into the tensors that standardize it."""
    parameters.set(f"{name}.mean", torch.from_numpy(mean))
    parameters.set(f"{name}.scale", torch.from_numpy(scale))
