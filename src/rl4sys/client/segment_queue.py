"""The bounded queue of sealed segments between the threads that act and the thread that encodes."""

from __future__ import annotations

import threading
from collections import deque

from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import Segment
from rl4sys.records import Overflow

_OVERHEAD = 1024
"""Bytes that the objects of a segment take beyond its values, so that the number of tiny segments is bounded too."""


class SegmentQueue:
    """A bounded queue, so that acting threads never wait for encoding or for a disk."""

    def __init__(self, capacity_bytes: int, overflow: Overflow, status: AgentStatus, linger: float = 0.0) -> None:
        """`linger`: seconds that the first segment waits for others, so that encoding interrupts acting less often."""
        self._linger = linger
        self._hurried = 0
        self._capacity = capacity_bytes
        self._overflow = overflow
        self._status = status
        self._queue: deque[tuple[Segment, Snapshot]] = deque()
        self._sizes: deque[int] = deque()
        """What each segment in the queue costs."""
        self._bytes = 0
        self._busy = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """Segments in the queue or being encoded."""
        return len(self._queue) + self._busy

    def post(self, segment: Segment, snapshot: Snapshot) -> None:
        """Add a segment. Waits only with `overflow: block`, while the queue is full."""
        size = cost(segment)
        with self._changed:
            while self._overflow is Overflow.BLOCK and self._queue and self._is_full(size) and not self._closed:
                self._changed.wait()
            if self._closed:
                self._status.add("drops:unsent_at_close")
                return
            while self._queue and self._is_full(size):
                if self._overflow is Overflow.DROP_NEWEST:
                    self._status.add("drops:overflow_newest")
                    return
                self._queue.popleft()
                self._bytes -= self._sizes.popleft()
                self._status.add("drops:overflow_oldest")
            self._queue.append((segment, snapshot))
            self._sizes.append(size)
            self._bytes += size
            if len(self._queue) == 1 or self._is_urgent():
                self._changed.notify_all()

    def take(self, most: int) -> list[tuple[Segment, Snapshot]]:
        """Wait for the next segments, up to so many; none once the queue is closed and empty."""
        with self._changed:
            self._busy = 0
            if not self._queue:
                self._changed.notify_all()
            while not self._queue:
                if self._closed:
                    return []
                self._changed.wait()
                if self._queue and self._linger:
                    self._changed.wait_for(self._is_urgent, self._linger)
            self._busy = min(most, len(self._queue))
            taken = [self._queue.popleft() for _ in range(self._busy)]
            self._bytes -= sum([self._sizes.popleft() for _ in taken])
            if self._overflow is Overflow.BLOCK:
                self._changed.notify_all()
            return taken

    def drained(self, timeout: float) -> bool:
        """Wait until every segment is encoded; false if that takes longer than `timeout` seconds."""
        with self._changed:
            self._hurried += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: not self._queue and not self._busy, timeout)
            finally:
                self._hurried -= 1

    def close(self) -> None:
        """Wake all waiting threads and accept nothing more; segments in the queue can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _is_urgent(self) -> bool:
        return self._closed or self._hurried > 0 or 2 * self._bytes > self._capacity

    def _is_full(self, size: int) -> bool:
        return self._bytes + size > self._capacity


def cost(segment: Segment) -> int:
    """The approximate size of a segment in memory, in bytes."""
    size = _OVERHEAD + segment.action.nbytes + segment.reward.nbytes
    for group in (segment.observation, segment.extras, segment.carry):
        if group:
            for array in group.values():
                size += array.nbytes
    return size
