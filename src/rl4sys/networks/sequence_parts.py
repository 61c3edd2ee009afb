"""The parts in which a program with memory runs over streams: rows, shifted registers, and cycles through memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy import Memory, Op, Program


@dataclass(frozen=True, slots=True)
class Rows:
    """Ops on no cycle: they run once over all rows."""

    ops: tuple[Op, ...]

    @property
    def reads(self) -> set[str]:
        """Registers that it needs."""
        return {name for op in self.ops for name in op.inputs} - self.writes

    @property
    def writes(self) -> set[str]:
        """Registers that it assigns."""
        return {name for op in self.ops for name in op.outputs}


@dataclass(frozen=True, slots=True)
class Shift:
    """A memory on no cycle: what a register was one row earlier."""

    memory: Memory

    @property
    def reads(self) -> set[str]:
        """The register that it remembers."""
        return {self.memory.next}

    @property
    def writes(self) -> set[str]:
        """The memory."""
        return {self.memory.name}


@dataclass(frozen=True, slots=True)
class Cycle:
    """Ops and memories that depend on each other: only they run row by row."""

    ops: tuple[Op, ...]
    memories: tuple[Memory, ...]

    @property
    def reads(self) -> set[str]:
        """Registers that it needs from others."""
        needed = {name for op in self.ops for name in op.inputs} | {memory.next for memory in self.memories}
        return needed - self.writes

    @property
    def writes(self) -> set[str]:
        """Registers that it assigns, and its memories."""
        return {name for op in self.ops for name in op.outputs} | {memory.name for memory in self.memories}


Part: TypeAlias = Rows | Shift | Cycle


def parts_of(program: Program, outputs: Sequence[str]) -> list[Part]:
    """The parts that the outputs depend on, in the order in which they can run, as many ops together as possible."""
    single, cycles = _components(program, outputs)
    waiting: list[Part] = cycles
    ops = single
    parts: list[Part] = []
    missing = {name for part in waiting for name in part.writes} | {name for op in ops for name in op.outputs}
    while ops or waiting:
        ready = list(_ready(ops, missing))
        if ready:
            parts.append(Rows(tuple(ready)))
            missing -= parts[-1].writes
            ops = [op for op in ops if op not in ready]
        following = [part for part in waiting if not part.reads & missing]
        for part in following:
            missing -= part.writes
        parts += following
        waiting = [part for part in waiting if part not in following]
        if not ready and not following:
            raise ValueError(f"The program reads {sorted(missing)} before they are assigned; order its ops.")
    return parts


def _ready(ops: Sequence[Op], missing: set[str]) -> Iterator[Op]:
    """Ops whose inputs are known, also those that only wait for each other; ops are in order."""
    missing = set(missing)
    for op in ops:
        if not missing.intersection(op.inputs):
            missing.difference_update(op.outputs)
            yield op


def _components(program: Program, outputs: Sequence[str]) -> tuple[list[Op], list[Part]]:
    """What the outputs depend on: ops on no cycle, and memories and cycles."""
    nodes: list[Op | Memory] = [*program.ops, *program.carry]
    writer = {name: place for place, op in enumerate(program.ops) for name in op.outputs}
    writer |= {memory.name: len(program.ops) + place for place, memory in enumerate(program.carry)}
    reaches = np.zeros((len(nodes), len(nodes)), np.bool_)
    for place, node in enumerate(nodes):
        for name in node.inputs if isinstance(node, Op) else (node.next,):
            if name in writer:
                reaches[writer[name], place] = True
    reaches = _closure(reaches)
    wanted = [writer[name] for name in outputs if name in writer]
    needed = [place for place in range(len(nodes)) if place in wanted or reaches[place, wanted].any()]
    singles: list[Op] = []
    others: list[Part] = []
    seen: set[int] = set()
    for place in needed:
        if place in seen:
            continue
        together = [other for other in needed if other == place or (reaches[place, other] and reaches[other, place])]
        seen.update(together)
        node = nodes[place]
        if reaches[place, place]:
            members = [nodes[other] for other in together]
            ops = tuple(member for member in members if isinstance(member, Op))
            others.append(Cycle(ops, tuple(member for member in members if isinstance(member, Memory))))
        elif isinstance(node, Op):
            singles.append(node)
        else:
            others.append(Shift(node))
    return singles, others


def _closure(reaches: Array) -> Array:
    """Whether one node leads to another over any number of edges."""
    while True:
        further = reaches | ((reaches.astype(np.int64) @ reaches.astype(np.int64)) > 0)
        if (further == reaches).all():
            return reaches
        reaches = further
