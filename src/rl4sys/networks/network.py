"""A network as algorithms see it: called with observations, trained by its optimizer, with a target if it has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rl4sys.networks.ensemble import EnsembleProgram, ProgramStep
from rl4sys.networks.layer_chain import BufferPool
from rl4sys.networks.optimizer import Loss, LossValue, Optimizer
from rl4sys.networks.parameters import Parameters
from rl4sys.networks.program import TensorMap
from rl4sys.policy import Program


class Network:
    """A program over trained parameters.

    Inside `minimize` of its own optimizer it is differentiated by its parameters; everywhere else they are constants,
    and only gradients of its inputs pass through it. With members, results have a leading axis for them.
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
        self._outputs, self._extra_inputs, self._squeezes = tuple(outputs), tuple(extra_inputs), squeeze
        parameters = optimizer.parameters
        self.target_parameters: Parameters | None = parameters.copy() if target else None
        ranks = {tensor.name: len(tensor.shape) for tensor in program.tensors}
        frozen = {name: parameters.views[name].detach() for name in ranks}
        first = {name: view[:1] if view.ndim > ranks[name] else view for name, view in frozen.items()}
        variants: list[TensorMap] = [parameters.views, frozen, first]
        variants.append(self.target_parameters.views if self.target_parameters is not None else frozen)
        pool = BufferPool()
        self._trained, self._frozen, self._first_member, self._target = (
            EnsembleProgram(program, tensors, pool, fused=fused and not optimizer.is_compiled, keep=outputs).steps
            for tensors in variants
        )

    def __call__(self, observation: TensorMap, *extra: torch.Tensor) -> Any:
        """The output for a batch, or a tuple of them where the network has several."""
        is_trained = self.optimizer.is_differentiating and torch.is_grad_enabled()
        return self._evaluate(self._trained if is_trained else self._frozen, observation, extra)

    def first_member(self, observation: TensorMap, *extra: torch.Tensor) -> Any:
        """The same for the first member alone, its parameters constant."""
        return self._evaluate(self._first_member, observation, extra)

    def target(self, observation: TensorMap, *extra: torch.Tensor) -> Any:
        """The output of the target network, without gradients."""
        with torch.no_grad():
            return self._evaluate(self._target, observation, extra)

    def minimize(self, loss: Loss[LossValue], *batch: Any) -> LossValue:
        """One optimizer step on a loss over the rows of a batch."""
        return self.optimizer.minimize(loss, *batch)

    def polyak_update(self, polyak: float) -> None:
        """Move the target network towards this one by the share `polyak`; 1 copies it."""
        if self.target_parameters is None:
            raise ValueError("This network has no target network; declare it with target=True.")
        self.target_parameters.flat.lerp_(self.optimizer.parameters.flat, polyak)

    def _evaluate(self, steps: Sequence[ProgramStep], observation: TensorMap, extra: Sequence[torch.Tensor]) -> Any:
        inputs = dict(observation)
        inputs.update(zip(self._extra_inputs, extra, strict=True))
        splitter = self.optimizer.splitter
        # A batch that is differentiated is split by the optimizer, as a whole.
        if torch.is_grad_enabled():
            return self._run(steps, inputs)
        if splitter.parts == 1:
            try:
                return self._run(steps, inputs)
            except (MemoryError, RuntimeError) as error:
                splitter.split(_rows(inputs), error)
        while True:
            try:
                parts = [
                    self._run(steps, {name: array[part] for name, array in inputs.items()})
                    for part in splitter.slices(_rows(inputs))
                ]
            except (MemoryError, RuntimeError) as error:
                splitter.split(_rows(inputs), error)
                continue
            if len(self._outputs) == 1:
                return torch.cat(parts, self._row_axis(parts[0]))
            return tuple(torch.cat(each, self._row_axis(each[0])) for each in zip(*parts, strict=True))

    def _run(self, steps: Sequence[ProgramStep], registers: dict[str, torch.Tensor]) -> Any:
        for step in steps:
            step(registers)
        if len(self._outputs) == 1:
            output = registers[self._outputs[0]]
            return output.squeeze(-1) if self._squeezes else output
        return tuple(registers[name] for name in self._outputs)

    def _row_axis(self, output: torch.Tensor) -> int:
        return output.ndim - (1 if self._squeezes else 2)


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


def _rows(inputs: TensorMap) -> int:
    return len(next(iter(inputs.values())))
