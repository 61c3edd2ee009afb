"""Encodes sealed segments into outbox payloads, in a background thread."""

from __future__ import annotations

import logging
from collections.abc import Callable

from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.courier import Courier
from rl4sys.client.segment_queue import SegmentQueue
from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import Ending, SchemaMismatch, Segment
from rl4sys.wire import SegmentRefused, encode_segment

_log = logging.getLogger(__name__)


class SegmentEncoder:
    """Moves segments from the queue into the outbox, so that acting threads never wait for a disk."""

    def __init__(
        self, queue: SegmentQueue, courier: Courier, status: AgentStatus, is_sent: Callable[[], bool] = lambda: True
    ) -> None:
        """`is_sent`: whether what is encoded is sent; otherwise it is dropped, to measure what recording costs."""
        self._queue = queue
        self._is_sent = is_sent
        self._courier = courier
        self._status = status

    def run(self) -> None:
        """Encode until the queue is closed and empty."""
        while (taken := self._queue.take()) is not None:
            self._encode(*taken)

    def _encode(self, segment: Segment, snapshot: Snapshot) -> None:
        try:
            # The server would refuse NaN and infinity; checking here saves the call.
            snapshot.form.schema.check(segment)
            payload = snapshot.schema_hash + encode_segment(snapshot.form, segment)
        except (SchemaMismatch, SegmentRefused) as error:
            if self._status.add("drops:not_finite"):
                _log.warning("A segment that cannot be learned from is dropped: %s", error)
            return
        if not self._is_sent():
            self._status.add("drops:not_sent_at_level_record")
            return
        self._courier.offer(payload, episode_ended=segment.ending is not Ending.CONTINUES)
