"""Random numbers that a program reads like an input, drawn from a decision's noise before the program runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rl4sys.experience import Array, Arrays
from rl4sys.policy.noise import normal
from rl4sys.policy.policy_spec import PolicySpec, number
from rl4sys.policy.vector_heads import Decide

FillNoise = Callable[[Array], None]
"""Takes noise and fills registers with random numbers."""


def chance_registers(spec: PolicySpec, rows: int) -> dict[str, Array]:
    """The registers that chance fills: those of the program, and that of a head with noise of its own."""
    sizes = {chance.name: chance.size for chance in spec.program.chance}
    if (drawn := spec.head.chance) is not None:
        sizes[drawn.name] = drawn.shape[0]
    return {name: np.zeros((rows, size), np.float32) for name, size in sizes.items()}


def compile_chance(spec: PolicySpec, registers: Mapping[str, Array]) -> FillNoise | None:
    """The function that fills these registers, in order; None if there are none."""
    fills: list[FillNoise] = []
    first = 0
    for chance in spec.program.chance:
        last = first + chance.uniform_numbers
        make = _normal if chance.distribution == "normal" else _uniform
        fills.append(make(registers[chance.name], slice(first, last)))
        first = last
    if (drawn := spec.head.chance) is not None:
        std = np.float32(number(spec.head.settings, "std", spec.head.kind))
        fills.append(_normal(registers[drawn.name], slice(first, first + 2 * drawn.shape[0]), std))
    if len(fills) <= 1:
        return fills[0] if fills else None

    def fill(noise: Array) -> None:
        for each in fills:
            each(noise)

    return fill


def after_chance(decide: Decide, spec: PolicySpec) -> Decide:
    """The head with its own numbers, which follow those of the program."""
    taken = spec.program.uniform_numbers
    if taken == 0:
        return decide

    def decide_after(noise: Array) -> tuple[Array, Arrays]:
        return decide(noise[:, taken:])

    return decide_after


def _normal(register: Array, numbers: slice, std: np.float32 | None = None) -> FillNoise:
    if std is None:
        return lambda noise: np.copyto(register, normal(noise[:, numbers]))

    def fill(noise: Array) -> None:
        np.multiply(normal(noise[:, numbers]), std, register)

    return fill


def _uniform(register: Array, numbers: slice) -> FillNoise:
    return lambda noise: np.copyto(register, noise[:, numbers])
