"""Runs of a program, and their way back: from gradients of its registers to those of its weights and inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from rl4sys.networks.dense import Chain
from rl4sys.networks.program import TensorMap

Registers = dict[str, torch.Tensor]


class Step(Protocol):
    """A part of a program: reads registers and assigns others."""

    def __call__(self, registers: Registers) -> None:
        """Run it; autograd sees what it does, if it is on."""


class Pass(Protocol):
    """One run of a program, which may be differentiated once, before the next."""

    registers: Registers

    def backward(self, gradients: TensorMap) -> Registers:
        """Given those of some registers, add to the gradients of the weights; returns those of the inputs asked for."""


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A chain between registers."""

    chain: Chain
    inputs: tuple[str, ...]
    output: str
    tensors: frozenset[str]
    registers: frozenset[str]
    """What it assigns, and what it keeps to itself."""

    def __call__(self, registers: Registers) -> None:
        """Run it as one step of autograd."""
        registers[self.output] = self.chain([registers[name] for name in self.inputs])

    def run(self, registers: Registers) -> list[torch.Tensor]:
        """Run it without autograd; returns what its backward pass needs."""
        values = self.chain.run([registers[name] for name in self.inputs])
        registers[self.output] = values[-1]
        return values


class DensePass:
    """A run whose backward pass is written out."""

    def __init__(
        self, registers: Registers, tape: list[tuple[ChainStep, list[torch.Tensor]]], differentiate: Sequence[str]
    ) -> None:
        self.registers = registers
        self._tape = tape
        self._stamp = self._written()
        self._wanted = set(differentiate)

    def backward(self, gradients: TensorMap) -> Registers:
        """From the last chain to the first."""
        if self._written() != self._stamp:
            raise RuntimeError("Another run has written over this one; differentiate a run before the next.")
        known = dict(gradients)
        wanted = self._wanted | {step.output for step, _ in self._tape}
        with torch.no_grad():
            for step, values in reversed(self._tape):
                gradient = known.pop(step.output, None)
                if gradient is not None:
                    needed = [name in wanted for name in step.inputs]
                    parts = [self.registers[name] for name in step.inputs]
                    found = step.chain.differentiate(values, gradient, parts, needed)
                    for name, part in zip(step.inputs, found, strict=True):
                        if part is not None:
                            known[name] = known[name] + part if name in known else part
        return {name: known[name] for name in self._wanted}

    def _written(self) -> int:
        """Counts how often the memory that the backward pass needs has been written to."""
        return sum(array._version for _, values in self._tape for array in values)


class AutogradPass:
    """A run that autograd differentiates, for programs with other ops than layers and activations."""

    def __init__(
        self, program: Callable[[TensorMap], Registers], inputs: TensorMap, differentiate: Sequence[str]
    ) -> None:
        self._leaves = {name: inputs[name].detach().requires_grad_() for name in differentiate}
        with torch.enable_grad():
            self._registers = program({**inputs, **self._leaves})
        self.registers = {name: register.detach() for name, register in self._registers.items()}

    def backward(self, gradients: TensorMap) -> Registers:
        """Through the graph."""
        torch.autograd.backward([self._registers[name] for name in gradients], list(gradients.values()))
        found = {name: leaf.grad for name, leaf in self._leaves.items()}
        return {name: gradient for name, gradient in found.items() if gradient is not None}
