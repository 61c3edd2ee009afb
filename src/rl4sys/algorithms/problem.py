"""What every algorithm is told, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch

from rl4sys.experience import Array, ArraySpec
from rl4sys.networks import NetworksConfig, UnsuitableNetwork
from rl4sys.policy import MASK, ActionSpec, PolicySpec, Program
from rl4sys.seeding import Seeds


class Update(NamedTuple):
    """The outcome of learning from one batch."""

    metrics: Mapping[str, float]
    feedback: Mapping[str, Array]
    """Per row of the batch, for the buffer: `priority`, …"""


class Policies(NamedTuple):
    """Two policies over the same weights: one tries things out, the other does its best."""

    explore: PolicySpec
    exploit: PolicySpec


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come; schedules depend on nothing else."""

    steps: int = 0
    """Environment steps learned from or stored so far."""
    total_steps: int | None = None
    """Steps the run will take; unknown in a live system, where nothing is annealed."""

    @property
    def fraction(self) -> float:
        """From 0 at the start to 1 at the end; 0 as long as the end is unknown."""
        return min(1.0, self.steps / self.total_steps) if self.total_steps else 0.0


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be learned, with what, where, and from which seeds."""

    observation: tuple[ArraySpec, ...]
    action: ActionSpec
    networks: NetworksConfig
    device: torch.device
    seeds: Seeds
    standardize: bool = False
    """Whether policies standardize what they see with statistics that travel with the weights."""

    @property
    def mask(self) -> str | None:
        """The name of the observation that says which choices are allowed, if there is one."""
        return MASK if any(spec.name == MASK for spec in self.observation) else None

    def torch_generator(self, *name: str | int) -> torch.Generator:
        """A torch generator for a named purpose. On the CPU, so that every device starts from equal weights."""
        return torch.Generator().manual_seed(self.seeds.integer(*name))


class UnsuitableActions(ValueError):
    """An algorithm cannot produce the actions that the environment wants."""


def without_memory(program: Program) -> Program:
    """The same program, if it has no memory: these algorithms learn from single steps and would train it wrongly."""
    if program.carry:
        names = ", ".join(memory.name for memory in program.carry)
        raise UnsuitableNetwork(
            f"The network has memory ({names}), which this algorithm does not carry from step to step. "
            f"Use a network without memory, such as type: mlp."
        )
    return program
