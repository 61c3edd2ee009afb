"""Streams of rows while a program runs over them: registers, memory, and where episodes start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from rl4sys.experience import Array
from rl4sys.networks.layer_chain import Registers
from rl4sys.policy import Memory


@dataclass(slots=True)
class StreamRun:
    """One run over B streams of L rows. Registers are flat, [B·L, …], or [n, B·L, …] where members differ."""

    is_first: torch.Tensor
    """[B, L] bool: memory is zeros before these rows."""
    carry: Mapping[str, torch.Tensor]
    """Memory before the first rows, [B, …] or [n, B, …]; zeros where it is not given."""
    registers: Registers
    wants_carry: bool = False
    """Whether memory after the last rows is to be left in `last`."""
    last: Registers = field(default_factory=dict)
    _fragments: Fragments | None = field(init=False, default=None)

    @property
    def streams(self) -> int:
        """B."""
        return self.is_first.shape[0]

    @property
    def length(self) -> int:
        """L."""
        return self.is_first.shape[1]

    @property
    def fragments(self) -> Fragments:
        """The streams cut at the starts of episodes; computed once."""
        if self._fragments is None:
            self._fragments = Fragments(self.is_first)
        return self._fragments

    def memory(self, memory: Memory, members: int | None) -> torch.Tensor:
        """One memory before the first rows: [B, …], or [n, B, …] if members have memory of their own."""
        shape = (self.streams, *memory.shape)
        given = self.carry.get(memory.name)
        if given is None:
            given = torch.zeros(shape, device=self.is_first.device)
        return given if members is None else given.expand(members, *shape)

    def by_time(self, register: torch.Tensor, stacked: bool) -> torch.Tensor:
        """A flat register as [B, L, …] or [n, B, L, …]."""
        members, shape = (register.shape[:1], register.shape[2:]) if stacked else ((), register.shape[1:])
        return register.reshape(*members, self.streams, self.length, *shape)


class Padded(NamedTuple):
    """Fragments of similar lengths side by side: [T, n, …], the shorter ones padded at their ends."""

    fragments: torch.Tensor
    """[n]: which ones."""
    rows: torch.Tensor
    """[T · n]: the row at each place; padding repeats a fragment's last row."""
    length: int


class Packed(NamedTuple):
    """All fragments in the order of torch's packed sequences: longest first, time by time."""

    order: torch.Tensor
    """The fragments from the longest to the shortest."""
    batch_sizes: torch.Tensor
    """How many fragments are longer than 0, 1, … rows; on the CPU, as kernels want it."""
    rows: torch.Tensor
    """The row at each place."""
    place: torch.Tensor
    """The place of each row."""


class Fragments:
    """Streams cut where episodes start, so that nothing passes from one episode to another.

    A fragment at the beginning of a stream continues its memory unless an episode starts there; all others start with
    zeros.
    """

    def __init__(self, is_first: torch.Tensor) -> None:
        self._device = is_first.device
        self._first = is_first.cpu().numpy()
        cut = self._first.copy()
        cut[:, 0] = True
        self._starts = np.flatnonzero(cut)
        self._lengths = np.diff(self._starts, append=cut.size)
        self._fragment = np.repeat(np.arange(len(self._starts)), self._lengths)
        self._age = np.arange(cut.size) - self._starts[self._fragment]

    def initial(self, memory: torch.Tensor) -> torch.Tensor:
        """Memory [B, h] before each fragment: [fragments, h]."""
        fragments, streams = self._continued
        zeros = memory.new_zeros(len(self._starts), *memory.shape[1:])
        return zeros.index_copy(0, fragments, memory.index_select(0, streams))

    @cached_property
    def _continued(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The fragments that continue a memory, and the streams that they belong to."""
        streams = np.flatnonzero(~self._first[:, 0])
        return self._tensor(self._fragment[streams * self._first.shape[1]]), self._tensor(streams)

    @cached_property
    def last(self) -> torch.Tensor:
        """Each stream's last fragment."""
        streams, length = self._first.shape
        return self._tensor(self._fragment[np.arange(1, streams + 1) * length - 1])

    @cached_property
    def padded(self) -> tuple[list[Padded], torch.Tensor]:
        """All fragments in groups, so that padding at most doubles them; and the place of each row in the groups."""
        # Torch's LSTM is ten times faster over fragments of one length than over packed ones.
        classes = np.ceil(np.log2(self._lengths)).astype(np.int64)
        groups: list[Padded] = []
        base, width, column = (np.zeros_like(self._starts) for _ in range(3))
        total = 0
        for each in np.unique(classes):
            chosen = np.flatnonzero(classes == each)
            length = int(self._lengths[chosen].max())
            steps = np.minimum(np.arange(length)[:, None], self._lengths[chosen] - 1)
            rows = (self._starts[chosen] + steps).ravel()
            groups.append(Padded(self._tensor(chosen), self._tensor(rows), length))
            base[chosen], width[chosen], column[chosen] = total, len(chosen), np.arange(len(chosen))
            total += rows.size
        place = base[self._fragment] + self._age * width[self._fragment] + column[self._fragment]
        return groups, self._tensor(place)

    @cached_property
    def packed(self) -> Packed:
        """All fragments in one sequence."""
        order = np.argsort(-self._lengths, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        sizes = len(order) - np.cumsum(np.bincount(self._lengths))[:-1]
        place = (np.cumsum(sizes) - sizes)[self._age] + rank[self._fragment]
        rows = np.empty_like(place)
        rows[place] = np.arange(len(place))
        return Packed(self._tensor(order), torch.from_numpy(sizes), self._tensor(rows), self._tensor(place))

    def _tensor(self, array: Array) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device)
