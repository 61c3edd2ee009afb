"""One record of a learner's log: the name of a segment for ever, and its bytes exactly as they were pushed."""

from __future__ import annotations

import struct
from typing import NamedTuple

_FORMAT = 1
_HEAD = struct.Struct("<BBQQI")
_LONGEST_CLIENT = 255


class Entry(NamedTuple):
    """A stored segment."""

    client: str
    epoch: int
    sequence: int
    steps: int
    segment: bytes

    def encode(self) -> bytes:
        """The payload of the record: format, length of the client's name, epoch, sequence, steps; name; segment."""
        client = self.client.encode()
        if len(client) > _LONGEST_CLIENT:
            raise ValueError(f"The client's name has {len(client)} bytes; a record has room for {_LONGEST_CLIENT}.")
        head = _HEAD.pack(_FORMAT, len(client), self.epoch, self.sequence, self.steps)
        return b"".join((head, client, self.segment))

    @classmethod
    def decode(cls, payload: bytes) -> Entry:
        """Read back what `encode` wrote. The log has checked its bytes already."""
        kind, length, epoch, sequence, steps = _HEAD.unpack_from(payload)
        if kind != _FORMAT:
            raise ValueError(
                f"A record of the log has format {kind}; this version reads {_FORMAT}. "
                f"Go on with the version that wrote it."
            )
        begin = _HEAD.size + length
        return cls(payload[_HEAD.size : begin].decode(), epoch, sequence, steps, payload[begin:])
