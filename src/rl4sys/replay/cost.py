"""What a replay takes, said before it is filled: to the byte, column by column."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rl4sys.experience import ArraySpec, SegmentSchema

SHARE = 0.8
"""Of what is at hand. The rest is for checkpoints being written, networks, environments and whoever else is there."""


@dataclass(frozen=True, slots=True)
class ReplayCost:
    """The columns of a replay, and the index over them, which is always in memory and wholly there from the start."""

    capacity: int
    """Transitions that can be held."""
    rows: int
    """Transitions that will be held, and so take memory."""
    columns: tuple[ArraySpec, ...]
    index: int
    """Bytes of the index."""
    is_mapped: bool
    """Whether the columns lie on the disk."""

    @property
    def row(self) -> int:
        """Bytes of one row of all columns."""
        return sum(math.prod(spec.shape) * np.dtype(spec.dtype).itemsize for spec in self.columns)

    @property
    def memory(self) -> int:
        """Bytes of memory when it is full."""
        return self.index + (0 if self.is_mapped else self.rows * self.row)

    @property
    def disk(self) -> int:
        """Bytes of scratch files, besides checkpoints; they are reserved for all that can be held."""
        return self.capacity * self.row if self.is_mapped else 0

    def most(self, memory: int | None, disk: int | None) -> int:
        """A capacity that would fit, if all of it were filled."""
        per_row = self.index / self.capacity
        found = [] if memory is None else [SHARE * memory / (per_row if self.is_mapped else per_row + self.row)]
        if disk is not None and self.is_mapped:
            found.append(SHARE * disk / self.row)
        return int(min([self.capacity, *found]))

    def fits(self, memory: int | None, disk: int | None) -> bool:
        """Whether it leaves enough of what is at hand; what is not known is not in the way."""
        return (memory is None or self.memory <= SHARE * memory) and (disk is None or self.disk <= SHARE * disk)

    def __str__(self) -> str:
        numbers = ", ".join(f"{spec.name} {_numbers(spec)}" for spec in self.columns)
        rows, place = (self.capacity, " on the disk") if self.is_mapped else (self.rows, "")
        count = f"{rows:,}" if rows == self.capacity else f"{rows:,} of {self.capacity:,}"
        return f"{count} × {self.row:,} B ({numbers}) = {amount(rows * self.row)}{place}, index {amount(self.index)}"


def columns_of(schema: SegmentSchema) -> tuple[ArraySpec, ...]:
    """The columns of one transition of such segments. What is observed is held twice: before and after the step."""
    return (
        *(ArraySpec(f"2 × {spec.name}", spec.dtype, (2, *spec.shape)) for spec in schema.observation),
        ArraySpec("action", schema.action.dtype, schema.action.shape),
        ArraySpec("reward", "float32", ()),
        ArraySpec("discount", "float32", ()),
        *schema.extras,
    )


def amount(count: int) -> str:
    """Bytes for people, in powers of ten: 212.0 MB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _numbers(spec: ArraySpec) -> str:
    shape = spec.shape[1:] if spec.name.startswith("2 × ") else spec.shape
    return f"{math.prod(shape)} {spec.dtype}" if shape else spec.dtype
