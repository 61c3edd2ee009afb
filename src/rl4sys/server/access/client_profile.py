"""An operator's order to measure what a client costs, and what the client has measured under it."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

from rl4sys.wire.generated import profile_pb2

_LEVELS = ("off", "decide", "record", "full")
_MOST_BLOCKS = 8_192
_MOST_BUCKETS = 1_024
_LONGEST_TEXT = 1_000


class ClientProfile:
    """One order. The client's reports and the operator's calls use it at the same time."""

    def __init__(self, order: profile_pb2.ProfileOrder, begin_until: float) -> None:
        """`begin_until`: when the order is withdrawn unless the client has taken it."""
        self.order = order
        self._begin_until = begin_until
        self._lock = threading.Lock()
        self._epoch: int | None = None
        self._blocks: list[profile_pb2.ProfileBlock] = []
        self._floor: int | None = None
        self._is_complete = False
        self._problem = ""

    @property
    def has_begun(self) -> bool:
        """Whether the client has taken the order."""
        return self._epoch is not None

    @property
    def is_complete(self) -> bool:
        """Whether nothing more will be measured."""
        return self._is_complete

    def due(self, now: float) -> profile_pb2.ProfileOrder | None:
        """The order, as long as the client has to carry it out."""
        with self._lock:
            if self._epoch is None and now > self._begin_until:
                self._end("the client did not take the order in time")
            return None if self._is_complete else self.order

    def take(self, progress: profile_pb2.ProfileProgress, epoch: int) -> None:
        """Keep what a client reports. Blocks that were reported before are ignored."""
        with self._lock:
            if self._is_complete or progress.sequence != self.order.sequence:
                return
            if self._epoch not in (None, epoch):
                self._end("the client was restarted while it was measured")
                return
            self._epoch = epoch
            known = len(self._blocks) - progress.first_block
            self._blocks += [_bounded(block) for block in progress.blocks[max(0, known) :] if block.level in _LEVELS]
            if progress.HasField("floor_nanoseconds"):
                self._floor = progress.floor_nanoseconds
            if len(self._blocks) > _MOST_BLOCKS:
                self._end(f"it reported more than {_MOST_BLOCKS:,} blocks")
            elif progress.is_complete:
                self._end(progress.problem[:_LONGEST_TEXT])

    def end(self, problem: str) -> None:
        """End the order; nothing more is measured."""
        with self._lock:
            if not self._is_complete:
                self._end(problem)

    def progress(self, have_blocks: int) -> profile_pb2.ProfileProgress:
        """What was measured after the first `have_blocks` blocks."""
        with self._lock:
            blocks: Sequence[profile_pb2.ProfileBlock] = self._blocks[have_blocks:]
            return profile_pb2.ProfileProgress(
                sequence=self.order.sequence,
                first_block=have_blocks,
                blocks=blocks,
                is_complete=self._is_complete,
                problem=self._problem,
                floor_nanoseconds=self._floor,
            )

    def _end(self, problem: str) -> None:
        self._is_complete, self._problem = True, problem


def _bounded(block: profile_pb2.ProfileBlock) -> profile_pb2.ProfileBlock:
    """A copy within the lengths of the contract, with finite times: it is kept, and shown to others."""
    kept = profile_pb2.ProfileBlock()
    kept.CopyFrom(block)
    kept.DiscardUnknownFields()
    for name in ("seconds", "cpu_seconds", "background_cpu_seconds"):
        if not math.isfinite(getattr(block, name)):
            setattr(kept, name, 0.0)
    if not math.isfinite(block.version_age_seconds):
        kept.ClearField("version_age_seconds")
    if len(block.times) > _MOST_BUCKETS:
        kept.times.clear()
        kept.times.update({bucket: block.times[bucket] for bucket in sorted(block.times)[:_MOST_BUCKETS]})
    return kept
