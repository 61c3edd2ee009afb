"""Encodes sealed segments into outbox payloads, in a background thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import groupby

from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.courier import Courier
from rl4sys.client.segment_queue import SegmentQueue, cost
from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import Ending, SchemaMismatch, Segment
from rl4sys.wire import SegmentRefused, encode_pack, encode_segment

_log = logging.getLogger(__name__)

_MOST_SEGMENTS = 1024
"""Segments of one pack."""
_MOST_BYTES = 1 << 20
"""Bytes of its segments in memory; those of the pack are fewer."""
_SHORT = 16
"""Steps up to which a segment is packed with others; a longer one is sent alone, at little more cost."""

_Sealed = tuple[Segment, Snapshot]


class SegmentEncoder:
    """Moves segments from the queue into the outbox, so that acting threads never wait for a disk.

    Short ones that wait together become one pack: of a one-step episode, headers would be most of the cost.
    """

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
        while taken := self._queue.take(_MOST_SEGMENTS):
            for group in packable(taken):
                self._encode_together(group)

    def _encode_together(self, group: list[_Sealed]) -> None:
        segments, snapshot = [segment for segment, _ in group], group[0][1]
        if len(group) > 1:
            try:
                payload = snapshot.schema_hash + encode_pack(snapshot.form, segments)
            except SegmentRefused:
                # One of them is not sound: alone, the others are.
                pass
            else:
                self._offer(payload, segments)
                return
        for segment in segments:
            self._encode(segment, snapshot)

    def _encode(self, segment: Segment, snapshot: Snapshot) -> None:
        try:
            # The server would refuse NaN and infinity; checking here saves the call.
            snapshot.form.schema.check(segment)
            payload = snapshot.schema_hash + encode_segment(snapshot.form, segment)
        except (SchemaMismatch, SegmentRefused) as error:
            if self._status.add("drops:not_finite"):
                _log.warning("A segment that cannot be learned from is dropped: %s", error)
            return
        self._offer(payload, [segment])

    def _offer(self, payload: bytes, segments: list[Segment]) -> None:
        if not self._is_sent():
            self._status.add("drops:not_sent_at_level_record", len(segments))
            return
        ended = sum(segment.ending is not Ending.CONTINUES for segment in segments)
        self._courier.offer(payload, ended=ended, count=len(segments))


def packable(sealed: Iterable[_Sealed]) -> Iterator[list[_Sealed]]:
    """Consecutive segments that one pack can hold, in their order; a long segment is alone."""
    for kind, alike in groupby(sealed, _kind):
        group: list[_Sealed] = []
        size = 0
        for item in alike:
            size += cost(item[0])
            if group and (kind is None or size > _MOST_BYTES):
                yield group
                group, size = [], cost(item[0])
            group.append(item)
        yield group


def _kind(sealed: _Sealed) -> Hashable:
    """Equal for segments that one pack can hold; None for a long one."""
    segment, snapshot = sealed
    if segment.steps > _SHORT:
        return None
    return (
        snapshot.schema_hash,
        id(snapshot.form),
        segment.stream.agent,
        segment.policy_version,
        segment.decided_by,
        segment.elapsed is None,
    )
