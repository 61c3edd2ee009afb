"""How much randomness is worth: fixed, or learned so that the policy keeps a wanted entropy."""

from __future__ import annotations

import math

import torch

from rl4sys.networks import FlatAdam, Parameters
from rl4sys.policy import Tensor
from rl4sys.state import State, require

FACTS = ("critic_loss", "q", "temperature", "actor_loss", "entropy")
"""What the algorithms with a temperature report."""


class FixedTemperature:
    """A temperature that stays as it is."""

    def __init__(self, value: float, device: torch.device) -> None:
        self.value = torch.tensor(value, dtype=torch.float32, device=device)

    def adapt(self, surplus: torch.Tensor) -> None:
        """Nothing to adapt."""

    def state(self) -> State:
        """Nothing to save."""
        return {}

    def restore(self, state: State) -> None:
        """Nothing to restore."""
        require(state)


class LearnedTemperature:
    """A temperature that falls while there is more entropy than wanted, and rises while there is less.

    It is learned as its logarithm, so that it stays positive (arXiv:1812.05905, sec. 5).
    """

    def __init__(self, first: float, lr: float, device: torch.device) -> None:
        self._parameters = Parameters((Tensor("log_alpha", (1,)),), device)
        self._parameters.flat.fill_(math.log(first))
        self._adam = FlatAdam(self._parameters, lr=lr, epsilon=1e-8, max_norm=None)
        self.value = self._parameters.flat.exp()[0]

    def adapt(self, surplus: torch.Tensor) -> None:
        """One step along the gradient of log α · (entropy − wanted entropy); `surplus` is that mean difference."""
        self._parameters.gradient.copy_(surplus)
        self._adam.descend()
        self.value = self._parameters.flat.exp()[0]

    def state(self) -> State:
        """The logarithm and the optimizer."""
        return {"log_alpha": self._parameters.flat.cpu().numpy().copy(), "adam": self._adam.state()}

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "log_alpha", "adam")
        self._parameters.flat.copy_(torch.from_numpy(state["log_alpha"]))
        self._adam.restore(state["adam"])
        self.value = self._parameters.flat.exp()[0]
