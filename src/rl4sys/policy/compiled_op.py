"""An op compiled to calls without arguments on buffers that are allocated once, and what all ops share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy.policy_spec import Op, number

Thunk = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Compiled:
    """The output buffers of an op and the calls that fill them, in order.

    For a single observation the calls themselves take most of the time: a `partial` of a numpy function costs no frame.
    """

    outputs: tuple[Array, ...]
    calls: tuple[Thunk, ...]


Product = Callable[[Array, Array], Array]
Compiler = Callable[[Op, list[Array], list[Array]], Compiled]


def buffer(shape: tuple[int, ...]) -> Array:
    """An uninitialised float32 array. A single row is followed by a one in memory: see `with_bias` in `ops`."""
    if len(shape) == 2 and shape[0] == 1:
        # Empty, not ones: the system does not allocate pages that are never written, however many a policy declares.
        row = np.empty(shape[1] + 1, np.float32)
        row[-1] = 1.0
        return row[None, :-1]
    return np.empty(shape, np.float32)


def sigmoid(x: Array, out: Array) -> None:
    """1 / (1 + e^−x), without overflow: (1 + tanh(x/2)) / 2."""
    np.multiply(x, np.float32(0.5), out)
    np.tanh(out, out)
    np.add(out, np.float32(1.0), out)
    np.multiply(out, np.float32(0.5), out)


def op_number(op: Op, name: str) -> np.float32:
    """A setting that must be a number."""
    return np.float32(number(op.settings, name, f"op '{op.kind}'"))


def op_count(op: Op, name: str, size: int) -> int:
    """A setting that must be a whole number from 1, and divide the length of the op's vectors."""
    count = number(op.settings, name, f"op '{op.kind}'")
    if count != int(count) or count < 1 or size % int(count):
        raise ValueError(
            f"Setting '{name}' of op '{op.kind}' is {count}; expected a whole number that divides a vector of {size}."
        )
    return int(count)


def op_whole(op: Op, name: str, least: int) -> int:
    """A setting that must be a whole number of at least this."""
    value = number(op.settings, name, f"op '{op.kind}'")
    if value != int(value) or not least <= value <= 65536:
        raise ValueError(f"Setting '{name}' of op '{op.kind}' is {value}; expected a whole number from {least}.")
    return int(value)
