"""How much memory and disk a replay buffer will take, column by column, before it is filled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rl4sys.experience import ArraySpec, SegmentSchema
from rl4sys.replay.available_space import AvailableSpace
from rl4sys.replay.frame_column import Stacks

USABLE_SHARE = 0.8
"""The share of the available space that a replay buffer may take.

The rest is for checkpoints being written, networks, environments and other processes.
"""


@dataclass(frozen=True, slots=True)
class ReplayCost:
    """The columns of a replay buffer, and the index over them, which is always in memory and allocated at the start."""

    capacity: int
    """Transitions that can be held."""
    rows: int
    """Transitions that will be held, and so take memory."""
    columns: tuple[ArraySpec, ...]
    index: int
    """Bytes of the index."""
    is_mapped: bool
    """Whether the columns are kept on the disk."""
    observation: tuple[ArraySpec, ...] = ()
    """What is kept once more at the end of each episode; how many end is not known, and not part of the sums."""

    @property
    def row(self) -> int:
        """Bytes of one row of all columns."""
        return _bytes(self.columns)

    @property
    def memory(self) -> int:
        """Bytes of memory when `rows` are held."""
        return self.index + (0 if self.is_mapped else self.rows * self.row)

    @property
    def disk(self) -> int:
        """Bytes of scratch files, not counting checkpoints; they are reserved for the whole capacity."""
        return self.capacity * self.row if self.is_mapped else 0

    def fits(self, space: AvailableSpace) -> bool:
        """Whether it leaves enough space for everything else. Space that is not known does not count."""
        fits_memory = space.memory is None or self.memory <= USABLE_SHARE * space.memory
        return fits_memory and (space.disk is None or self.disk <= USABLE_SHARE * space.disk)

    def largest_capacity(self, space: AvailableSpace) -> int:
        """A capacity, at most the present one, that would fit if all of it were filled."""
        index_row = self.index / self.capacity
        memory_row = index_row if self.is_mapped else index_row + self.row
        limits = [] if space.memory is None else [USABLE_SHARE * space.memory / memory_row]
        if space.disk is not None and self.is_mapped:
            limits.append(USABLE_SHARE * space.disk / self.row)
        return int(min([self.capacity, *limits]))

    def __str__(self) -> str:
        numbers = ", ".join(f"{spec.name} {_numbers(spec)}" for spec in self.columns)
        rows, place = (self.capacity, " on the disk") if self.is_mapped else (self.rows, "")
        count = f"{rows:,}" if rows == self.capacity else f"{rows:,} of {self.capacity:,}"
        size = format_bytes(rows * self.row)
        end = f", and {_bytes(self.observation):,} B per episode end" if self.observation else ""
        return f"{count} × {self.row:,} B ({numbers}) = {size}{place}, index {format_bytes(self.index)}{end}"


def columns_of(schema: SegmentSchema, stacks: Stacks | None = None) -> tuple[ArraySpec, ...]:
    """The columns of one step of such segments. Each observation is held once, and of a stack the newest frame."""
    frames = {name: stack.frame for name, stack in (stacks or {}).items()}
    return (
        *(ArraySpec(spec.name, spec.dtype, frames.get(spec.name, spec.shape)) for spec in schema.observation),
        ArraySpec("action", schema.action.dtype, schema.action.shape),
        ArraySpec("reward", "float32", ()),
        ArraySpec("discount", "float32", ()),
        *schema.extras,
    )


def format_bytes(count: int) -> str:
    """A number of bytes with its unit, in powers of ten: 212.0 MB."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _numbers(spec: ArraySpec) -> str:
    return f"{math.prod(spec.shape)} {spec.dtype}" if spec.shape else spec.dtype


def _bytes(specs: tuple[ArraySpec, ...]) -> int:
    return sum(math.prod(spec.shape) * np.dtype(spec.dtype).itemsize for spec in specs)
