"""Minimises losses over batches: gradients by autograd, in parts where memory is short, then one optimizer step."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import torch

from rl4sys.networks.laprop import clip_adaptively, laprop_step
from rl4sys.networks.layer_chain import release_buffers
from rl4sys.networks.parameters import Parameters
from rl4sys.state import State, StateMismatch, require

_log = logging.getLogger(__name__)

LossValue = TypeVar("LossValue", torch.Tensor, tuple[torch.Tensor, ...])
Loss: TypeAlias = Callable[..., LossValue]
"""A mean over rows. It may return more tensors after it: scalars that are means too, or rows along the last axis."""
_BETA1, _BETA2 = 0.9, 0.999
_CPU_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory")


@runtime_checkable
class StreamedBatch(Protocol):
    """A batch of streams: its loss is a mean over their steps, and streams may have different numbers of them."""

    @property
    def steps(self) -> int:
        """Steps in all streams together."""


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
    rule: Literal["adam", "laprop"] = "adam"
    """How a gradient becomes a step."""
    adaptive_clip: float | None = None
    """The gradient of each tensor is scaled down to at most this share of the norm of the tensor."""
    warmup_steps: int = 0
    """Steps over which the learning rate grows from zero."""


class BatchSplitter:
    """Counts the parts that batches are computed in: one, until memory runs out; then 2, 4, … as long as that helps.

    The result is the same but for rounding. A run that has enough memory is never split, so its bits do not change.
    """

    def __init__(self) -> None:
        self.parts = 1
        self._has_failed = False

    def split(self, rows: int, error: BaseException) -> None:
        """Use twice as many parts from now on; raises `error` if it is not about memory, or parts are single rows."""
        if not is_out_of_memory(error) or self.parts >= rows:
            raise error
        self.parts *= 2
        self._has_failed = True
        _log.warning(
            "Out of memory: batches of %d rows are split into %d parts from now on; results differ by rounding. (%s)",
            *(rows, self.parts, str(error).partition("\n")[0]),
        )

    def slices(self, rows: int) -> list[slice]:
        """The rows of each part."""
        if self._has_failed:
            # Only here: while the error was handled, its traceback kept the memory of the failed attempt.
            release_buffers()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            self._has_failed = False
        size = -(-rows // self.parts)
        return [slice(first, min(first + size, rows)) for first in range(0, rows, size)]


class Optimizer:
    """Adam (arXiv:1412.6980) or LaProp over the flat vector of `Parameters`: few calls, whatever the layers."""

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
            if self.splitter.parts == 1 or not batch:
                try:
                    return self._compiled_backward(loss, batch) if self.is_compiled else self._backward(loss, batch)
                except (MemoryError, RuntimeError) as error:
                    self.splitter.split(len(batch[0]) if batch else 1, error)
            return self._in_parts(loss, batch)
        finally:
            self.is_differentiating = False

    def _in_parts(self, loss: Loss[LossValue], batch: Sequence[Any]) -> LossValue:
        rows = len(batch[0])
        while True:
            try:
                parts = self.splitter.slices(rows)
                self.parameters.gradient.zero_()
                split = [[rowed[part] for rowed in batch] for part in parts]
                shares = [_size(part[0]) / _size(batch[0]) for part in split]
                found = [self._backward(loss, part, share) for part, share in zip(split, shares, strict=True)]
                joined = _joined(found, shares)
                self._loss = joined if isinstance(joined, torch.Tensor) else joined[0]
                return joined
            except (MemoryError, RuntimeError) as error:
                self.splitter.split(rows, error)

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


def _size(batch: Any) -> int:
    """What a mean over a batch is taken over: steps of streams, or rows."""
    return batch.steps if isinstance(batch, StreamedBatch) else len(batch)


def _describe_gradient(norm: float, tensors: Sequence[str]) -> str:
    """A sentence about a gradient whose norm is not finite."""
    if not tensors:
        return f"The norm of the gradient is {norm}, though each of its elements is finite: they are too large."
    listed = ", ".join(tensors[:4]) + (f" and {len(tensors) - 4} more" if len(tensors) > 4 else "")
    return f"The gradient is not finite in {listed}."


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory, of the machine or of a device, has run out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _CPU_OUT_OF_MEMORY)


def joined_rows(parts: Sequence[torch.Tensor], shares: Sequence[float]) -> torch.Tensor:
    """The results of all parts as one: rows along the last axis, scalars as means weighted by their shares."""
    if parts[0].ndim:
        return torch.cat(list(parts), -1)
    return torch.stack([part * share for part, share in zip(parts, shares, strict=True)]).sum()


def _joined(found: Sequence[LossValue], shares: Sequence[float]) -> LossValue:
    if isinstance(found[0], torch.Tensor):
        return joined_rows([part for part in found if isinstance(part, torch.Tensor)], shares)
    return tuple(joined_rows(parts, shares) for parts in zip(*found, strict=True))
