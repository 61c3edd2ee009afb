"""Optimizers by name: how a gradient becomes a step."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from pydantic import Field

from rl4sys.config import Config, Registry
from rl4sys.networks.parameters import Parameters

_ORTHOGONAL = (3.4445, -4.7750, 2.0315)
"""Coefficients of the Newton–Schulz iteration that drive singular values to about 1."""


class StepState(NamedTuple):
    """What a step depends on and changes. Both moments are zero at first and are saved with the parameters."""

    parameters: Parameters
    first: torch.Tensor
    second: torch.Tensor
    steps: int
    """Steps taken, with this one."""
    epsilon: float
    """What the algorithm adds to denominators, unless the user says otherwise."""


class OptimizerConfig(Config):
    """A rule that turns gradients into steps."""

    @abstractmethod
    def step(self, state: StepState, lr: float) -> None:
        """One step in place."""


OPTIMIZERS: Registry[OptimizerConfig] = Registry("optimizer", OptimizerConfig)


class AdaptiveConfig(OptimizerConfig):
    """Settings of Adam and of what is built on it."""

    beta1: float = Field(0.9, ge=0, lt=1)
    """How slowly the mean of gradients changes. More smooths them more."""
    beta2: float = Field(0.999, ge=0, lt=1)
    """How slowly the mean of squared gradients changes."""
    epsilon: float | None = Field(None, gt=0)
    """Added to the denominator: steps of small gradients become smaller; the algorithm's own value if not given."""

    def adam_step(self, state: StepState, lr: float) -> None:
        """Adam over all parameters."""
        count = torch.full((), float(state.steps), device=state.first.device)
        torch._fused_adam_(
            [state.parameters.flat],
            [state.parameters.gradient],
            [state.first],
            [state.second],
            [],
            [count],
            lr=lr,
            beta1=self.beta1,
            beta2=self.beta2,
            weight_decay=0.0,
            eps=state.epsilon if self.epsilon is None else self.epsilon,
            amsgrad=False,
            maximize=False,
        )


@OPTIMIZERS.register("adam")
class AdamConfig(AdaptiveConfig):
    """Adam (arXiv:1412.6980)."""

    def step(self, state: StepState, lr: float) -> None:
        """Adam."""
        self.adam_step(state, lr)


@OPTIMIZERS.register("adamw")
class AdamWConfig(AdaptiveConfig):
    """Adam with decoupled weight decay (arXiv:1711.05101)."""

    weight_decay: float = Field(0.01, ge=0)
    """Weights of layers shrink by the learning rate times this in each step. Biases and single numbers do not."""

    def step(self, state: StepState, lr: float) -> None:
        """Decay, then Adam."""
        _decay(state.parameters, lr * self.weight_decay)
        self.adam_step(state, lr)


@OPTIMIZERS.register("sgd")
class SGDConfig(OptimizerConfig):
    """Stochastic gradient descent."""

    momentum: float = Field(0.0, ge=0, lt=1)
    """Share of the last step that the next one keeps. More smooths more, and overshoots more."""
    nesterov: bool = False
    """Look ahead along the momentum."""
    weight_decay: float = Field(0.0, ge=0)
    """As for `adamw`."""

    def step(self, state: StepState, lr: float) -> None:
        """Along the gradient, or along its running sum."""
        _decay(state.parameters, lr * self.weight_decay)
        gradient, velocity = state.parameters.gradient, state.first
        if self.momentum:
            velocity.mul_(self.momentum).add_(gradient)
            gradient = gradient + self.momentum * velocity if self.nesterov else velocity
        state.parameters.flat.add_(gradient, alpha=-lr)


@OPTIMIZERS.register("rmsprop")
class RMSpropConfig(OptimizerConfig):
    """Gradients divided by the root of their running mean square."""

    decay: float = Field(0.99, ge=0, lt=1)
    """How slowly that mean changes."""
    momentum: float = Field(0.0, ge=0, lt=1)
    """Share of the last step that the next one keeps."""
    epsilon: float | None = Field(None, gt=0)
    """Added to the denominator; the algorithm's own value if not given."""

    def step(self, state: StepState, lr: float) -> None:
        """Along the normalised gradient, or along its running sum."""
        gradient = state.parameters.gradient
        state.second.mul_(self.decay).addcmul_(gradient, gradient, value=1.0 - self.decay)
        epsilon = state.epsilon if self.epsilon is None else self.epsilon
        direction = gradient / state.second.sqrt().add_(epsilon)
        if self.momentum:
            direction = state.first.mul_(self.momentum).add_(direction)
        state.parameters.flat.add_(direction, alpha=-lr)


@OPTIMIZERS.register("muon")
class MuonConfig(AdaptiveConfig):
    """Steps of orthogonal matrices for the weights of layers, Adam for all else (arXiv:2502.16982)."""

    momentum: float = Field(0.95, ge=0, lt=1)
    """Share of earlier gradients that a matrix keeps."""
    weight_decay: float = Field(0.0, ge=0)
    """As for `adamw`."""
    iterations: int = Field(5, ge=1, le=20)
    """Rounds that make a matrix orthogonal. More are more exact, and slower."""

    @torch.no_grad()
    def step(self, state: StepState, lr: float) -> None:
        """Adam for all, whose steps of matrices are then replaced."""
        _decay(state.parameters, lr * self.weight_decay)
        matrices = {name: view for name, view in _weights(state.parameters).items() if view.ndim in (2, 3)}
        before = {name: view.detach().clone() for name, view in matrices.items()}
        momenta = {name: _slice(state.first, state.parameters, name) for name in matrices}
        kept = {name: momentum.clone() for name, momentum in momenta.items()}
        self.adam_step(state, lr)
        for name, view in matrices.items():
            gradient = view.grad
            assert gradient is not None
            momenta[name].copy_(torch.lerp(kept[name], gradient, 1.0 - self.momentum))
            direction = orthogonal_matrix(torch.lerp(gradient, momenta[name], self.momentum), self.iterations)
            # With this factor steps are about as long as those of Adam, so that learning rates carry over.
            scale = 0.2 * max(view.shape[-2:]) ** 0.5
            view.copy_(before[name].add_(direction, alpha=-lr * scale))


def orthogonal_matrix(matrices: torch.Tensor, iterations: int) -> torch.Tensor:
    """The nearly orthogonal matrices [..., n, m] with the singular vectors of the given ones."""
    a, b, c = _ORTHOGONAL
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    x: torch.Tensor = matrices.mT if is_tall else matrices
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=1e-7)
    for _ in range(iterations):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if is_tall else x


def as_optimizer(value: Any) -> Any:
    """What a user may give for an optimizer: its name alone, or a mapping."""
    return {"name": value} if isinstance(value, str) else value


def _weights(parameters: Parameters) -> dict[str, torch.Tensor]:
    """The trained weights of layers: not biases, nor single numbers such as a temperature."""
    return {name: view for name, view in parameters.views.items() if view.requires_grad and name.endswith("weight")}


@torch.no_grad()
def _decay(parameters: Parameters, share: float) -> None:
    for weight in _weights(parameters).values() if share else ():
        weight.mul_(1.0 - share)


def _slice(flat: torch.Tensor, parameters: Parameters, name: str) -> torch.Tensor:
    offset, view = parameters.layout.offset(name), parameters.views[name]
    return flat[offset : offset + view.numel()].view(view.shape)
