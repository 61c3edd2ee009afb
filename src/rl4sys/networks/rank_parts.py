"""The parts of every batch that the ranks of a run take: all of them here in turn, or one here and the rest elsewhere.

Either way the gradient is the sum of the gradients of the parts in the order of ranks, so the bits do not depend on
where a part was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Protocol, TypeAlias

import torch

from rl4sys.networks.noise_stream import NoiseStream
from rl4sys.networks.part_messages import PartMessages, PartReport

Found: TypeAlias = tuple[torch.Tensor, ...]
"""What a part yields: scalars that are shares of means, or rows along some axis."""


class RankExchange(Protocol):
    """How the ranks of a run exchange tensors."""

    rank: int

    def gather(self, mine: torch.Tensor, everyone: torch.Tensor) -> None:
        """Fill `everyone` [ranks, n] with the tensors [n] of all ranks, in their order."""


class RankParts:
    """Splits batches for ranks. With one rank, which is usual, nothing is split."""

    def __init__(self, noise: NoiseStream | None = None) -> None:
        self.count = 1
        """The number of ranks."""
        self.local_parts = 1
        """The most parts into which a rank has split its own part, since its memory is short."""
        self._is_updating = False
        self._noise = noise or NoiseStream(torch.Generator())
        self._messages: PartMessages | None = None
        self._exchange: RankExchange | None = None

    def take(self, count: int, exchange: RankExchange | None) -> None:
        """Split into `count` parts from now on; without an exchange, this process computes all of them."""
        self.count, self._exchange = count, exchange
        self._messages = PartMessages(exchange, count) if exchange is not None else None

    @contextmanager
    def updating(self) -> Iterator[None]:
        """All ranks compute the same update within this context, so they may evaluate networks together."""
        self._is_updating = True
        try:
            yield
        finally:
            self._is_updating = False

    @property
    def evaluates_together(self) -> bool:
        """Whether ranks split an evaluation without gradients now: in an update, and not within a part of it."""
        return self._is_updating and not self._noise.is_in_part

    def summed(
        self, rows: int, compute: Callable[[slice], Found], gradient: torch.Tensor, *, is_small: bool = False
    ) -> Found:
        """Sum up gradients and scalars of all parts, and join their rows along the last axis.

        `compute` leaves the gradient of its part in `gradient`. What is small is computed by each rank in full, which
        takes less time than an exchange.
        """
        if self._messages is None or is_small:
            return self._summed_in_turn(rows, compute, gradient)
        part = self._slices(rows)[self._rank]
        found: Found = ()
        gradient.zero_()
        if part.start < part.stop:
            found = self._computed(self._rank, part, compute)
        report = PartReport(found, self._noise.was_drawn_from, self.local_parts)
        reports = self._messages.exchange(report, gradient)
        self.local_parts = max(report.local_parts for report in reports)
        self._noise.advance(self.count, was_drawn_from=any(report.drew_noise for report in reports))
        return joined([report.found for report in reports if report.found], -1)

    def evaluated(self, rows: int, compute: Callable[[slice], Found], row_axis: int) -> Found:
        """The outputs of all parts, joined along an axis."""
        slices = self._slices(rows)
        if self._messages is None:
            return joined([self._computed(number, part, compute) for number, part in enumerate(slices)], row_axis)
        found = self._computed(self._rank, slices[self._rank], compute)
        reports = self._messages.exchange(PartReport(found, drew_noise=False, local_parts=self.local_parts))
        self.local_parts = max(report.local_parts for report in reports)
        return joined([report.found for report in reports], row_axis)

    @property
    def _rank(self) -> int:
        assert self._exchange is not None
        return self._exchange.rank

    def _summed_in_turn(self, rows: int, compute: Callable[[slice], Found], gradient: torch.Tensor) -> Found:
        total, found = torch.zeros_like(gradient), []
        for number, part in enumerate(self._slices(rows)):
            if part.start < part.stop:
                found.append(self._computed(number, part, compute))
                total.add_(gradient)
        gradient.copy_(total)
        self._noise.advance(self.count, was_drawn_from=self._noise.was_drawn_from)
        return joined(found, -1)

    def _computed(self, number: int, part: slice, compute: Callable[[slice], Found]) -> Found:
        with self._noise.part(number):
            return compute(part)

    def _slices(self, rows: int) -> list[slice]:
        """Rows of each rank: equal shares, but for one row."""
        bounds = [number * rows // self.count for number in range(self.count + 1)]
        return [slice(first, last) for first, last in pairwise(bounds)]


def joined(parts: Sequence[Found], row_axis: int) -> Found:
    """The results of all parts as one: rows side by side, scalars as sums."""
    return tuple(
        torch.cat(list(each), row_axis) if each[0].ndim else torch.stack(list(each)).sum()
        for each in zip(*parts, strict=True)
    )
