"""The log of a learner on another machine: records that its host reads and sends."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Sequence

from rl4sys.records import Record, RecordsGone


def encode_records(records: Sequence[Record]) -> bytes:
    """Consecutive records in one message: a line of JSON, then their bytes."""
    header = [records[0].number, [len(record.payload) for record in records]]
    return json.dumps(header).encode() + b"\n" + b"".join(record.payload for record in records)


def decode_records(message: bytes) -> list[Record]:
    """Read back what `encode_records` wrote."""
    line, _, data = message.partition(b"\n")
    first, lengths = json.loads(line)
    records, begin = [], 0
    for number, length in enumerate(lengths, first):
        records.append(Record(number, data[begin : begin + length]))
        begin += length
    return records


class SentRecords:
    """Records in the order of the log, from the one that the host sends first. Any thread may add to them."""

    def __init__(self, first: int, committed: int) -> None:
        """`committed` is the end of the log when the worker starts."""
        self.position = first
        self._next, self._committed = first, committed
        self._waiting: deque[Record] = deque()
        self._lock = threading.Lock()

    def add(self, records: Sequence[Record]) -> None:
        """Take the next records."""
        with self._lock:
            if records[0].number != self._next:
                raise ValueError(f"record {records[0].number} was sent, and {self._next} is the next one")
            self._waiting.extend(records)
            self._next = records[-1].number + 1

    def committed(self) -> int:
        """The end of the log when the worker started, or of what was sent since."""
        with self._lock:
            return max(self._committed, self._next)

    def read(self, limit_bytes: int) -> list[Record]:
        """The next records that have arrived: as many as reach the limit."""
        with self._lock:
            if self._waiting and self._waiting[0].number != self.position:
                raise RecordsGone(
                    f"The host sends records from {self._waiting[0].number} on, and {self.position} is the next one: "
                    "its checkpoint was not restored."
                )
            records, taken = [], 0
            while self._waiting and taken < limit_bytes:
                records.append(self._waiting.popleft())
                taken += len(records[-1].payload)
            self.position += len(records)
            return records

    def sync(self) -> None:
        """Nothing: the host syncs its log before it stores a checkpoint."""

    def close(self) -> None:
        """Nothing is open."""
