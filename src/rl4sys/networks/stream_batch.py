"""Streams of rows while a program runs over them: registers, memory, and where episodes start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

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


class Fragments:
    """Streams cut where episodes start, in the order of torch's packed sequences: longest first, time by time.

    A fragment at the beginning of a stream continues its memory unless an episode starts there; all others start
    with zeros. So one call of a sequence kernel runs all of them, and nothing passes from one episode to another.
    """

    def __init__(self, is_first: torch.Tensor) -> None:
        self._device = is_first.device
        first = is_first.cpu().numpy()
        streams, length = first.shape
        cut = first.copy()
        cut[:, 0] = True
        starts = np.flatnonzero(cut)
        lengths = np.diff(starts, append=cut.size)
        self.count = len(starts)
        order = np.argsort(-lengths, kind="stable")
        self._rank = np.empty_like(order)
        self._rank[order] = np.arange(len(order))
        ended = np.cumsum(np.bincount(lengths))
        sizes = len(starts) - ended[:-1]
        self.batch_sizes = torch.from_numpy(sizes)
        """How many fragments are longer than 0, 1, … rows; on the CPU, as kernels want it."""
        self._fragment = np.repeat(np.arange(len(starts)), lengths)
        age = np.arange(cut.size) - starts[self._fragment]
        place = (np.cumsum(sizes) - sizes)[age] + self._rank[self._fragment]
        rows = np.empty_like(place)
        rows[place] = np.arange(cut.size)
        self.place, self.rows = self._tensor(place), self._tensor(rows)
        self._first, self._shape = first, (streams, length)

    @cached_property
    def continued(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The fragments that continue a memory, by rank, and the streams that they belong to."""
        streams = np.flatnonzero(~self._first[:, 0])
        return self._tensor(self._rank[self._fragment[streams * self._shape[1]]]), self._tensor(streams)

    @cached_property
    def last(self) -> torch.Tensor:
        """The rank of each stream's last fragment."""
        streams, length = self._shape
        return self._tensor(self._rank[self._fragment[np.arange(1, streams + 1) * length - 1]])

    def initial(self, memory: torch.Tensor) -> torch.Tensor:
        """Memory [B, h] before each fragment: [fragments, h]."""
        ranks, streams = self.continued
        zeros = memory.new_zeros(self.count, *memory.shape[1:])
        return zeros.index_copy(0, ranks, memory.index_select(0, streams))

    def _tensor(self, array: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device)
