"""Adam on a flat vector: one call per step, whatever the number of layers."""

from __future__ import annotations

import math

import torch

from rl4sys.networks.finite import NonFiniteUpdate, describe_gradient
from rl4sys.networks.parameters import Parameters, Part
from rl4sys.state import State, require

_FIRST_DECAY, _SECOND_DECAY = 0.9, 0.999


class FlatAdam:
    """Adam over the flat vector of `Parameters`, with the gradient's norm clipped (arXiv:1412.6980).

    On one contiguous vector torch's fused kernel is called without its optimizer, which spends most of its time on
    bookkeeping.
    """

    def __init__(self, parameters: Parameters | Part, *, lr: float, epsilon: float, max_norm: float | None) -> None:
        self._parameters = parameters
        self._lr = lr
        self._epsilon = epsilon
        self._max_norm = max_norm
        self._steps = 0
        self._first = torch.zeros_like(parameters.flat)
        self._second = torch.zeros_like(parameters.flat)
        self._count = torch.zeros((), device=parameters.flat.device)
        self._norm = torch.zeros(())

    def step(self, loss: torch.Tensor, lr: float | None = None) -> torch.Tensor:
        """Descend once along the gradient of the loss; returns the gradient's norm before clipping.

        Raises `NonFiniteUpdate`, and changes nothing, if the loss or its gradient is not finite.
        """
        self._parameters.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
        return self.step_along(loss, lr)

    def step_along(self, loss: torch.Tensor, lr: float | None = None) -> torch.Tensor:
        """The same for a loss whose gradient the parameters hold already."""
        if not math.isfinite(loss.item()):
            raise NonFiniteUpdate(f"The loss is {loss.item()}.", self._parameters.faulty())
        norm: torch.Tensor = torch.linalg.vector_norm(self._parameters.gradient)
        self._step(norm, self._lr if lr is None else lr)
        return norm

    def descend(self) -> None:
        """Descend once along the gradient that the parameters hold.

        Raises `NonFiniteUpdate`, and changes nothing, if it is not finite.
        """
        gradient = self._parameters.gradient
        # Where nothing is clipped only finiteness is asked for, which the square answers faster.
        clips = self._max_norm is not None
        self._step(torch.linalg.vector_norm(gradient) if clips else torch.dot(gradient, gradient), self._lr)

    @property
    def gradient_norm(self) -> float:
        """That of the last gradient, before clipping."""
        if self._max_norm is not None:
            return float(self._norm)
        return float(torch.linalg.vector_norm(self._parameters.gradient))

    def _step(self, norm: torch.Tensor, lr: float) -> None:
        if not math.isfinite(norm.item()):
            faulty = self._parameters.faulty()
            raise NonFiniteUpdate(describe_gradient(norm.item(), faulty), faulty)
        self._norm = norm
        self._clip(norm)
        self._descend(self._parameters.gradient, lr)

    def _clip(self, norm: torch.Tensor) -> None:
        if self._max_norm is not None:
            self._parameters.gradient.mul_(torch.clamp(self._max_norm / (norm + 1e-6), max=1.0))

    def _descend(self, gradient: torch.Tensor, lr: float) -> None:
        """Algorithm 1 of the paper."""
        self._steps += 1
        torch._fused_adam_(
            [self._parameters.flat],
            [gradient],
            [self._first],
            [self._second],
            [],
            [self._count.fill_(self._steps)],
            lr=lr,
            beta1=_FIRST_DECAY,
            beta2=_SECOND_DECAY,
            weight_decay=0.0,
            eps=self._epsilon,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> State:
        """The step counter and both moments."""
        return {
            "steps": self._steps,
            "first_moment": self._first.cpu().numpy().copy(),
            "second_moment": self._second.cpu().numpy().copy(),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "steps", "first_moment", "second_moment")
        self._steps = state["steps"]
        self._first.copy_(torch.from_numpy(state["first_moment"]))
        self._second.copy_(torch.from_numpy(state["second_moment"]))
