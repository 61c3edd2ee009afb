"""Splits batches when memory is short."""

from __future__ import annotations

import logging
from typing import Any, Protocol, runtime_checkable

import torch

from rl4sys.networks.layer_chain import release_buffers
from rl4sys.networks.rank_parts import RankParts

_log = logging.getLogger(__name__)

_CPU_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory")


@runtime_checkable
class StreamedBatch(Protocol):
    """A batch of streams: its loss is a mean over their steps, and streams may have different numbers of them."""

    @property
    def steps(self) -> int:
        """Steps in all streams together."""


class BatchSplitter:
    """Counts the parts that batches are computed in: one, until memory runs out; then 2, 4, … as long as that helps.

    The result is the same but for rounding. A run that has enough memory is never split, so its bits do not change.
    """

    def __init__(self, ranks: RankParts | None = None) -> None:
        self.ranks = ranks or RankParts()
        """The parts of the ranks of a run; each rank splits its own part further if its memory is short."""
        self._has_failed = False

    @property
    def parts(self) -> int:
        """Parts that this process computes one after the other."""
        return self.ranks.local_parts

    @parts.setter
    def parts(self, parts: int) -> None:
        self.ranks.local_parts = parts

    def split(self, rows: int, error: BaseException) -> None:
        """Use twice as many parts from now on; raises `error` if it is not about memory, or parts are single rows."""
        if not is_out_of_memory(error) or self.parts >= rows:
            raise error
        self.parts *= 2
        self._has_failed = True
        _log.warning(
            "Out of memory: batches of %d rows are split into %d parts from now on; results differ by rounding. (%s)",
            *(rows, self.parts, str(error).partition("\n")[0]),
        )

    def slices(self, rows: int) -> list[slice]:
        """The rows of each part."""
        if self._has_failed:
            # Only here: while the error was handled, its traceback kept the memory of the failed attempt.
            release_buffers()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            self._has_failed = False
        size = -(-rows // self.parts)
        return [slice(first, min(first + size, rows)) for first in range(0, rows, size)]


def batch_size(batch: Any) -> int:
    """What a mean over a batch is taken over: steps of streams, or rows."""
    return batch.steps if isinstance(batch, StreamedBatch) else len(batch)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory, of the machine or of a device, has run out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _CPU_OUT_OF_MEMORY)
