"""A network as algorithms see it: called with observations, trained by its optimizer, with a target if it has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import torch

from rl4sys.networks.ensemble import EnsembleProgram
from rl4sys.networks.layer_chain import BufferPool, Registers
from rl4sys.networks.optimizer import Loss, LossValue, Optimizer
from rl4sys.networks.parameters import Parameters
from rl4sys.networks.program import TensorMap
from rl4sys.networks.sequence_program import SequenceProgram
from rl4sys.networks.stream_inputs import RowInputs, StreamInputs
from rl4sys.policy import Program

Variant: TypeAlias = Literal["trained", "frozen", "first_member", "target"]
Inputs = TypeVar("Inputs", RowInputs, StreamInputs)
_WORTH_SHARING = 50_000_000
"""Multiplications from which ranks evaluate a network together."""


class Network:
    """A program over trained parameters.

    Inside `minimize` of its own optimizer it is differentiated by its parameters; everywhere else they are constants,
    and only gradients of its inputs pass through it. With members, results have a leading axis for them. A program with
    memory runs over whole streams, with `unroll`.
    """

    def __init__(
        self,
        program: Program,
        outputs: Sequence[str],
        optimizer: Optimizer,
        *,
        extra_inputs: Sequence[str] = (),
        target: bool = False,
        squeeze: bool = False,
        fused: bool = False,
    ) -> None:
        """`extra_inputs` names what is passed beside the observation; `squeeze` drops the last axis, of size 1.

        `fused` layers are one step of autograd: faster for ensembles and wide networks, slower for small ones.
        """
        self.optimizer = optimizer
        self.has_memory = bool(program.carry)
        self._program, self._outputs = program, tuple(outputs)
        self._extra_inputs, self._squeezes = tuple(extra_inputs), squeeze
        self._is_fused, self._pool = fused and not optimizer.is_compiled, BufferPool()
        parameters = optimizer.parameters
        self.target_parameters: Parameters | None = parameters.copy() if target else None
        ranks = {tensor.name: len(tensor.shape) for tensor in program.tensors}
        frozen = {name: parameters.views[name].detach() for name in ranks}
        first = {name: view[:1] if view.ndim > ranks[name] else view for name, view in frozen.items()}
        following = self.target_parameters.views if self.target_parameters is not None else frozen
        self._tensors: Mapping[Variant, TensorMap] = {
            "trained": parameters.views,
            "frozen": frozen,
            "first_member": first,
            "target": following,
        }
        self._rows: Mapping[Variant, EnsembleProgram] = {}
        if not self.has_memory:
            self._rows = {
                variant: EnsembleProgram(program, tensors, self._pool, fused=self._is_fused, keep=outputs)
                for variant, tensors in self._tensors.items()
            }
        self._streams: dict[Variant, SequenceProgram] = {}
        self._has_images = any(op.kind == "conv2d" for op in program.ops)

    def __call__(self, observation: TensorMap, *extra: torch.Tensor) -> Any:
        """The output for a batch, or a tuple of them where the network has several."""
        return self._evaluate(self._present, observation, extra)

    def first_member(self, observation: TensorMap, *extra: torch.Tensor) -> Any:
        """The same for the first member alone, its parameters constant."""
        return self._evaluate("first_member", observation, extra)

    def target(self, observation: TensorMap, *extra: torch.Tensor) -> Any:
        """The output of the target network, without gradients."""
        with torch.no_grad():
            return self._evaluate("target", observation, extra)

    def unroll(
        self, observation: TensorMap, is_first: torch.Tensor, carry: TensorMap | None, *extra: torch.Tensor
    ) -> Any:
        """The output for streams: [B, L, …] in and out, memory starting from `carry` [B, …] or from zeros.

        Where `is_first` [B, L] is true, memory starts as zeros again. A network without memory gives the same as for
        rows.
        """
        return self._unroll(self._present, observation, is_first, carry, extra)

    def target_unroll(
        self, observation: TensorMap, is_first: torch.Tensor, carry: TensorMap | None, *extra: torch.Tensor
    ) -> Any:
        """The same for the target network, without gradients."""
        with torch.no_grad():
            return self._unroll("target", observation, is_first, carry, extra)

    def first_member_unroll(
        self, observation: TensorMap, is_first: torch.Tensor, carry: TensorMap | None, *extra: torch.Tensor
    ) -> Any:
        """The same for the first member alone, its parameters constant."""
        return self._unroll("first_member", observation, is_first, carry, extra)

    def carry_after(
        self,
        observation: TensorMap,
        is_first: torch.Tensor,
        carry: TensorMap | None,
        *extra: torch.Tensor,
        target: bool = False,
    ) -> Registers:
        """Memory after the last rows of streams, without gradients: the carry of what follows, as for a burn-in."""
        program = self._sequence("target" if target else "frozen")
        with torch.no_grad():
            return program(self._named(observation, extra), is_first, carry, wants_carry=True)[1]

    def minimize(self, loss: Loss[LossValue], *batch: Any) -> LossValue:
        """One optimizer step on a loss over the rows of a batch."""
        return self.optimizer.minimize(loss, *batch)

    def polyak_update(self, polyak: float) -> None:
        """Move the target network towards this one by the share `polyak`; 1 copies it."""
        if self.target_parameters is None:
            raise ValueError("This network has no target network; declare it with target=True.")
        self.target_parameters.flat.lerp_(self.optimizer.parameters.flat, polyak)

    @property
    def _present(self) -> Variant:
        return "trained" if self.optimizer.is_differentiating and torch.is_grad_enabled() else "frozen"

    def _named(self, observation: TensorMap, extra: Sequence[torch.Tensor]) -> Registers:
        return dict(observation) | dict(zip(self._extra_inputs, extra, strict=True))

    def _evaluate(self, variant: Variant, observation: TensorMap, extra: Sequence[torch.Tensor]) -> Any:
        if self.has_memory:
            names = ", ".join(memory.name for memory in self._program.carry)
            raise ValueError(f"This network has memory ({names}), so it runs over streams; call unroll.")
        steps = self._rows[variant].steps

        def run(inputs: RowInputs) -> list[torch.Tensor]:
            registers = dict(inputs.arrays)
            for step in steps:
                step(registers)
            return [registers[name] for name in self._outputs]

        return self._in_parts(run, RowInputs(self._named(observation, extra)), row_axis=-2)

    def _unroll(
        self,
        variant: Variant,
        observation: TensorMap,
        is_first: torch.Tensor,
        carry: TensorMap | None,
        extra: Sequence[torch.Tensor],
    ) -> Any:
        program = self._sequence(variant)

        def run(inputs: StreamInputs) -> list[torch.Tensor]:
            return program(inputs.arrays, inputs.is_first, inputs.carry)[0]

        axes = {memory.name: len(memory.shape) for memory in self._program.carry}
        # An actor's memory may be given to a critic, which has its own.
        known = {name: memory for name, memory in (carry or {}).items() if name in axes}
        inputs = StreamInputs(self._named(observation, extra), is_first, known, axes)
        return self._in_parts(run, inputs, row_axis=-3)

    def _sequence(self, variant: Variant) -> SequenceProgram:
        program = self._streams.get(variant)
        if program is None:
            tensors = self._tensors[variant]
            program = SequenceProgram(self._program, tensors, self._outputs, self._pool, fused=self._is_fused)
            self._streams[variant] = program
        return program

    def _in_parts(self, run: Callable[[Inputs], list[torch.Tensor]], inputs: Inputs, row_axis: int) -> Any:
        """Evaluate, in parts for ranks or where memory is short. The optimizer splits what is differentiated."""
        if torch.is_grad_enabled():
            return self._result(run(inputs))
        ranks = self.optimizer.splitter.ranks
        if ranks.count > 1 and ranks.evaluates_together and self._is_worth_sharing(len(inputs), ranks.count):
            compute = lambda part: self._in_local_parts(run, inputs[part], row_axis)  # noqa: E731
            return self._result(ranks.evaluated(len(inputs), compute, row_axis))
        return self._result(self._in_local_parts(run, inputs, row_axis))

    def _is_worth_sharing(self, rows: int, ranks: int) -> bool:
        """Whether ranks evaluate these rows together: an exchange takes about as long as a small network."""
        return rows >= ranks and (self._has_images or rows * self.optimizer.parameters.layout.size >= _WORTH_SHARING)

    def _in_local_parts(
        self, run: Callable[[Inputs], list[torch.Tensor]], inputs: Inputs, row_axis: int
    ) -> tuple[torch.Tensor, ...]:
        splitter = self.optimizer.splitter
        if splitter.ranks.local_parts == 1:
            try:
                return tuple(run(inputs))
            except (MemoryError, RuntimeError) as error:
                splitter.split(len(inputs), error)
        while True:
            try:
                parts = [run(inputs[part]) for part in splitter.slices(len(inputs))]
            except (MemoryError, RuntimeError) as error:
                splitter.split(len(inputs), error)
                continue
            return tuple(torch.cat(each, row_axis) for each in zip(*parts, strict=True))

    def _result(self, outputs: Sequence[torch.Tensor]) -> Any:
        if len(outputs) > 1:
            return tuple(outputs)
        return outputs[0].squeeze(-1) if self._squeezes else outputs[0]


class TrainedScalar:
    """One number with an optimizer of its own, such as the logarithm of a temperature."""

    def __init__(self, name: str, optimizer: Optimizer) -> None:
        self._name, self.optimizer = name, optimizer

    @property
    def value(self) -> torch.Tensor:
        """The number; differentiable inside `minimize`, constant elsewhere."""
        view = self.optimizer.parameters.views[self._name]
        return view if self.optimizer.is_differentiating else view.detach()

    def minimize(self, loss: Loss[LossValue], *batch: Any) -> LossValue:
        """One optimizer step on a loss over the rows of a batch."""
        return self.optimizer.minimize(loss, *batch)
