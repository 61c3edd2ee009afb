"""Whether a program that came from outside can be run at all: every name in it leads somewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from rl4sys.experience import ArraySpec
from rl4sys.policy import Head, PolicySpec
from rl4sys.policy.policy_spec import number
from rl4sys.wire.errors import ContractViolation

MOST_WEIGHTS = 1 << 27
"""The most values of all tensors together: half a gigabyte."""
MOST_NOISE = 1 << 12
"""The most normal numbers that a program reads in one decision."""


def require_runnable(spec: PolicySpec) -> None:
    """Raise `ContractViolation` unless each register is assigned once, before it is read, and each tensor exists."""
    program, head = spec.program, spec.head
    tensors = {tensor.name for tensor in program.tensors}
    if len(tensors) != len(program.tensors):
        raise _broken("two tensors have the same name")
    weights = sum(math.prod(tensor.shape) for tensor in program.tensors)
    if weights > MOST_WEIGHTS:
        raise _broken(f"its tensors have {weights} values; at most {MOST_WEIGHTS} can travel")
    registers: set[str] = set()
    _assign((array.name for array in program.inputs), registers)
    _assign((memory.name for memory in program.carry), registers)
    _assign((array.name for array in _chance(head)), registers)
    for op in program.ops:
        _require(op.kind, op.inputs, registers)
        _require(op.kind, op.tensors, tensors)
        _assign(op.outputs, registers)
    _require("the head", head.inputs, registers)
    following = [memory.next for memory in program.carry]
    if not set(head.outputs) <= set(following):
        raise _broken(f"the head assigns {list(head.outputs)}, which no memory takes up")
    _assign(head.outputs, registers)
    _require("the memory", following, registers)
    _require("the head", head.tensors, tensors)
    if head.mask is not None:
        _require("the mask", (head.mask,), {array.name for array in program.inputs})


def _chance(head: Head) -> Iterator[ArraySpec]:
    """The register of normal numbers that the program reads, if there is one, and of a size that can be drawn."""
    try:
        chance = head.chance
        if chance is None:
            return
        std = number(head.settings, "std", head.kind)
    except ValueError as problem:
        raise _broken(str(problem)) from problem
    if chance.shape[0] > MOST_NOISE or std < 0.0:
        raise _broken(
            f"the head draws {chance.shape[0]} numbers of deviation {std}; expected at most {MOST_NOISE}, of deviation "
            f"0 or more"
        )
    yield chance


def _assign(names: Iterable[str], registers: set[str]) -> None:
    for name in names:
        if not name or name in registers:
            raise _broken(f"the register '{name}' is assigned twice or has no name")
        registers.add(name)


def _require(reader: str, names: Iterable[str], known: set[str]) -> None:
    missing = [name for name in names if name not in known]
    if missing:
        raise _broken(f"{reader} reads {missing[:4]}, which does not exist by then")


def _broken(problem: str) -> ContractViolation:
    return ContractViolation(
        f"The policy's program is broken: {problem}. Compare the versions of client and server, and report it."
    )
