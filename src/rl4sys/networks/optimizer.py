"""Minimises losses over batches: gradients by autograd, in parts where memory is short, then one optimizer step."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import torch

from rl4sys.networks.batch_splitter import BatchSplitter, batch_size
from rl4sys.networks.laprop import clip_adaptively, laprop_step
from rl4sys.networks.optimizer_rules import OptimizerConfig, StepState
from rl4sys.networks.parameters import Parameters
from rl4sys.networks.rank_parts import joined
from rl4sys.state import State, StateMismatch, require

_log = logging.getLogger(__name__)

LossValue = TypeVar("LossValue", torch.Tensor, tuple[torch.Tensor, ...])
Loss: TypeAlias = Callable[..., LossValue]
"""A mean over rows; or a tuple with more tensors after it: scalars that are means too, or rows along the last axis."""
_BETA1, _BETA2 = 0.9, 0.999


class NonFiniteUpdate(ArithmeticError):
    """A loss or a gradient is not finite; its optimizer has changed neither weights nor moments."""

    def __init__(self, what: str, tensors: Sequence[str] = ()) -> None:
        """`tensors` are those whose gradients are not finite."""
        super().__init__(what)
        self.tensors = tuple(tensors)


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """How the parameters of a network are trained."""

    lr: float
    epsilon: float = 1e-8
    max_grad_norm: float | None = None
    """Longer gradients are scaled down to this norm."""
    anneal_lr: bool = False
    """Lower the learning rate linearly to zero over the run."""
    rule: Literal["adam", "laprop"] | OptimizerConfig = "adam"
    """How a gradient becomes a step."""
    adaptive_clip: float | None = None
    """The gradient of each tensor is scaled down to at most this share of the norm of the tensor."""
    warmup_steps: int = 0
    """Steps over which the learning rate grows from zero."""
    lr_setting: str = "lr"
    """The setting that the learning rate comes from, by which a schedule names it."""


class Optimizer:
    """Adam (arXiv:1412.6980) or another rule over the flat vector of `Parameters`: few calls, whatever the layers."""

    def __init__(
        self, parameters: Parameters, settings: OptimizerSettings, splitter: BatchSplitter, *, compiled: bool = False
    ) -> None:
        self.parameters, self.settings, self.splitter = parameters, settings, splitter
        self.is_compiled = compiled
        self.compile_seconds = 0.0
        """Time spent on compiling losses."""
        self.lr = settings.lr
        """The learning rate of the next step."""
        self.steps = 0
        """Steps taken so far."""
        self.is_differentiating = False
        """Whether the gradient of these parameters is being computed; networks are constants otherwise."""
        self.gradient_norm = torch.zeros((), device=parameters.flat.device)
        """That of the last gradient, before clipping."""
        self._first = torch.zeros_like(parameters.flat)
        self._second = torch.zeros_like(parameters.flat)
        self._count = torch.zeros((), device=parameters.flat.device)
        self._loss = torch.zeros((), device=parameters.flat.device)
        self._compiled: dict[Loss[Any], Loss[Any]] = {}

    def minimize(self, loss: Loss[LossValue], *batch: Any) -> LossValue:
        """One step down the gradient of `loss(*batch)`; returns what the loss returned, detached.

        Only the networks of this optimizer are differentiated by their parameters; all others are constants. Everything
        in `batch` has the same number of rows. Raises `NonFiniteUpdate`, and changes nothing of this optimizer, if the
        loss or the gradient is not finite.
        """
        found = self.differentiate(loss, *batch)
        self.step()
        return found

    def differentiate(self, loss: Loss[LossValue], *batch: Any) -> LossValue:
        """The first half of `minimize`: compute the gradient, and take no step yet."""
        self.is_differentiating = True
        try:
            if self.splitter.ranks.count > 1 and batch:
                return self._over_ranks(loss, batch)
            if self.splitter.ranks.local_parts == 1 or not batch:
                try:
                    return self._compiled_backward(loss, batch) if self.is_compiled else self._backward(loss, batch)
                except (MemoryError, RuntimeError) as error:
                    self.splitter.split(len(batch[0]) if batch else 1, error)
            joined_parts: LossValue = self._noted(self._in_parts(loss, batch, batch_size(batch[0])))
            return joined_parts
        finally:
            self.is_differentiating = False

    def _over_ranks(self, loss: Loss[LossValue], batch: Sequence[Any]) -> LossValue:
        """The gradient as the sum over the parts of all ranks, in their order."""
        whole = batch_size(batch[0])
        # One number: computing all parts takes less time than exchanging them.
        is_small = self.parameters.layout.size == 1

        def compute(part: slice) -> tuple[torch.Tensor, ...]:
            return self._in_parts(loss, [rowed[part] for rowed in batch], whole)

        ranks = self.splitter.ranks
        found: LossValue = self._noted(
            ranks.summed(len(batch[0]), compute, self.parameters.gradient, is_small=is_small)
        )
        return found

    def _in_parts(self, loss: Loss[Any], batch: Sequence[Any], whole: int) -> tuple[torch.Tensor, ...]:
        """The gradient of rows of a batch that has `whole` of them: its share of the gradient of the batch."""
        rows = len(batch[0])
        while True:
            try:
                parts = self.splitter.slices(rows)
                self.parameters.gradient.zero_()
                split = [[rowed[part] for rowed in batch] for part in parts]
                shares = [batch_size(part[0]) / whole for part in split]
                found = [self._backward(loss, part, share) for part, share in zip(split, shares, strict=True)]
                return joined([_weighted(each, share) for each, share in zip(found, shares, strict=True)], -1)
            except (MemoryError, RuntimeError) as error:
                self.splitter.split(rows, error)

    def _noted(self, found: tuple[torch.Tensor, ...]) -> Any:
        """What the loss returns for the whole batch, from the joined results of its parts."""
        self._loss = found[0]
        return found if len(found) > 1 else found[0]

    def _backward(self, loss: Loss[LossValue], batch: Sequence[Any], share: float | None = None) -> LossValue:
        """Compute the gradient, or add that of a share of the batch to it."""
        if share is None:
            self.parameters.gradient.zero_()
        found = loss(*batch)
        value = found if isinstance(found, torch.Tensor) else found[0]
        (value if share is None else value * share).backward()  # type: ignore[no-untyped-call]  # torch lacks it
        self._loss = value.detach()
        return value.detach() if isinstance(found, torch.Tensor) else tuple(tensor.detach() for tensor in found)

    def step(self) -> None:
        """The second half of `minimize`: check and clip the gradient, then one step of the rule."""
        gradient, settings = self.parameters.gradient, self.settings
        norm = torch.linalg.vector_norm(gradient)
        if not math.isfinite(norm.item()) or not math.isfinite(self._loss.item()):
            non_finite = self.parameters.non_finite()
            if not math.isfinite(self._loss.item()):
                raise NonFiniteUpdate(f"The loss is {self._loss.item()}.", non_finite)
            raise NonFiniteUpdate(_describe_gradient(norm.item(), non_finite), non_finite)
        self.gradient_norm = norm
        if settings.max_grad_norm is not None:
            gradient.mul_(torch.clamp(settings.max_grad_norm / (norm + 1e-6), max=1.0))
        if settings.adaptive_clip is not None:
            views = self.parameters.trained()
            clip_adaptively(views, [view.grad for view in views if view.grad is not None], settings.adaptive_clip)
        self.steps += 1
        lr = self.lr * min(1.0, self.steps / settings.warmup_steps) if settings.warmup_steps else self.lr
        if settings.rule == "laprop":
            laprop_step(self.parameters.flat, gradient, self._first, self._second, self.steps, lr)
            return
        if isinstance(settings.rule, OptimizerConfig):
            state = StepState(self.parameters, self._first, self._second, self.steps, settings.epsilon)
            settings.rule.step(state, lr)
            return
        torch._fused_adam_(
            [self.parameters.flat],
            [gradient],
            [self._first],
            [self._second],
            [],
            [self._count.fill_(self.steps)],
            lr=lr,
            beta1=_BETA1,
            beta2=_BETA2,
            weight_decay=0.0,
            eps=settings.epsilon,
            amsgrad=False,
            maximize=False,
        )

    def anneal(self, fraction: float) -> None:
        """Set the learning rate for this fraction of the run, if it is annealed."""
        if self.settings.anneal_lr:
            self.lr = self.settings.lr * (1.0 - fraction)

    def _compiled_backward(self, loss: Loss[LossValue], batch: Sequence[Any]) -> LossValue:
        """The same with a compiled loss; the first call compiles it, both ways, and takes a while."""
        # Functions made inside another one are new at every update and would be compiled every time.
        if "<locals>" in getattr(loss, "__qualname__", "<locals>"):
            return self._backward(loss, batch)
        is_new, began = loss not in self._compiled, time.perf_counter()
        if is_new:
            self._compiled[loss] = torch.compile(loss)
        compiled: Loss[LossValue] = self._compiled[loss]
        found: LossValue = self._backward(compiled, batch)
        if not is_new:
            return found
        self.compile_seconds += time.perf_counter() - began
        _log.info("compiled %s in %.1f s", getattr(loss, "__name__", "a loss"), time.perf_counter() - began)
        return found

    def start_over(self) -> None:
        """Forget steps and moments: the parameters were replaced."""
        self.steps = 0
        self._first.zero_()
        self._second.zero_()

    def state(self) -> State:
        """Parameters, step counter and both moments."""
        return {
            "parameters": self.parameters.flat.cpu().numpy().copy(),
            "steps": self.steps,
            "first_moment": self._first.cpu().numpy().copy(),
            "second_moment": self._second.cpu().numpy().copy(),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "parameters", "steps", "first_moment", "second_moment")
        if len(state["parameters"]) != len(self.parameters.flat):
            raise StateMismatch(
                f"The saved state has {len(state['parameters'])} parameters; these networks have "
                f"{len(self.parameters.flat)}. Use the network settings of the run that saved it."
            )
        self.parameters.flat.copy_(torch.from_numpy(state["parameters"]))
        self.steps = state["steps"]
        self._first.copy_(torch.from_numpy(state["first_moment"]))
        self._second.copy_(torch.from_numpy(state["second_moment"]))


def _describe_gradient(norm: float, tensors: Sequence[str]) -> str:
    """A sentence about a gradient whose norm is not finite."""
    if not tensors:
        return f"The norm of the gradient is {norm}, though each of its elements is finite: they are too large."
    listed = ", ".join(tensors[:4]) + (f" and {len(tensors) - 4} more" if len(tensors) > 4 else "")
    return f"The gradient is not finite in {listed}."


def _weighted(found: torch.Tensor | tuple[torch.Tensor, ...], share: float) -> tuple[torch.Tensor, ...]:
    """The results of a part of a batch: scalars become shares of the means over the batch."""
    tensors = (found,) if isinstance(found, torch.Tensor) else found
    return tuple(tensor if tensor.ndim else tensor * share for tensor in tensors)
