"""Segments in a learner's log: a record for each, or for a pack of them, and the set of all that were ever stored."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rl4sys.atomic_files import replace_file
from rl4sys.failpoints import failpoint
from rl4sys.records import Deduplication, RecordsDamaged
from rl4sys.wire import split_pack
from rl4sys.wire.generated import experience_pb2

_RECORD_FORMAT, PACK_FORMAT = 1, 3
"""The first byte of a record; that of a command is 2."""
_HEADER = struct.Struct("<BBQQI")
_COUNT = struct.Struct("<I")
_MAX_CLIENT_BYTES = 255
_FILE = "stored.json"
_FILE_FORMAT = 1


class StoredSegment(NamedTuple):
    """One record of the log: the permanent identity of a segment, and its bytes exactly as they were pushed.

    With `segments` above 1 it is a pack of so many segments: `sequence` is the first number, `steps` the sum.
    """

    client: str
    epoch: int
    sequence: int
    steps: int
    segment: bytes
    segments: int = 1

    @property
    def sequences(self) -> range:
        """The numbers of its segments."""
        return range(self.sequence, self.sequence + self.segments)

    def alone(self) -> Iterator[StoredSegment]:
        """Each of its segments as a record of its own."""
        if self.segments == 1:
            yield self
            return
        for sequence, segment in zip(self.sequences, split_pack(self.segment, self.segments), strict=True):
            steps = experience_pb2.Segment.FromString(segment).steps
            yield StoredSegment(self.client, self.epoch, sequence, steps, segment)

    def encode(self) -> bytes:
        """The payload of the record: format, length of the client's name, epoch, sequence, steps; name; segment.

        That of a pack has its count before the name.
        """
        client = self.client.encode()
        if len(client) > _MAX_CLIENT_BYTES:
            raise ValueError(
                f"The client's name has {len(client)} bytes; a record holds at most {_MAX_CLIENT_BYTES}. Shorten it."
            )
        record_format = _RECORD_FORMAT if self.segments == 1 else PACK_FORMAT
        header = _HEADER.pack(record_format, len(client), self.epoch, self.sequence, self.steps)
        count = b"" if self.segments == 1 else _COUNT.pack(self.segments)
        return b"".join((header, count, client, self.segment))

    @classmethod
    def decode(cls, payload: bytes) -> StoredSegment:
        """Read back what `encode` wrote. The log has already checked the bytes."""
        record_format, length, epoch, sequence, steps = _HEADER.unpack_from(payload)
        if record_format not in (_RECORD_FORMAT, PACK_FORMAT):
            raise ValueError(
                f"A record of the log has format {record_format}; this version reads {_RECORD_FORMAT} and "
                f"{PACK_FORMAT}. Serve the data directory with the version that wrote it."
            )
        count, name = 1, _HEADER.size
        if record_format == PACK_FORMAT:
            (count,), name = _COUNT.unpack_from(payload, name), name + _COUNT.size
        begin = name + length
        return cls(payload[name:begin].decode(), epoch, sequence, steps, payload[begin:], count)


@dataclass(slots=True)
class ClientCounts:
    """What one client has contributed to one learner."""

    segments: int = 0
    steps: int = 0
    bytes: int = 0


@dataclass(slots=True)
class StoredSegments:
    """Identities and counts of all records below `position`, folded from the log.

    Kept in a file of its own, because old log files are removed and no segment may be learned from twice.
    """

    position: int = 0
    deduplication: Deduplication = field(default_factory=Deduplication)
    clients: dict[str, ClientCounts] = field(default_factory=dict)

    def note(self, number: int, entry: StoredSegment) -> None:
        """Add the record `number`, which must be the next one; earlier ones are ignored."""
        if number < self.position:
            return
        self.position = number + 1
        if added := self.deduplication.add_all(entry.client, entry.epoch, entry.sequences):
            counts = self.clients.setdefault(entry.client, ClientCounts())
            counts.segments += added
            counts.steps += entry.steps
            counts.bytes += len(entry.segment)

    def note_command(self, number: int) -> None:
        """Add the record `number`, which is no segment; earlier ones are ignored."""
        self.position = max(self.position, number + 1)

    def encode(self) -> bytes:
        """The contents of the file."""
        body = {
            "format": _FILE_FORMAT,
            "position": self.position,
            "deduplication": self.deduplication.state(),
            "clients": {name: [counts.segments, counts.steps, counts.bytes] for name, counts in self.clients.items()},
        }
        return json.dumps({"sha256": _digest(body), "body": body}).encode()

    @staticmethod
    def write(directory: Path, encoded: bytes) -> None:
        """Replace the file atomically."""
        failpoint("before stored names")
        replace_file(directory / _FILE, encoded)
        failpoint("after stored names")

    @classmethod
    def decode(cls, encoded: bytes) -> StoredSegments:
        """Read back what `encode` wrote; ValueError, KeyError or TypeError if it is not that."""
        contents = json.loads(encoded)
        body = contents["body"]
        if contents["sha256"] != _digest(body) or body["format"] != _FILE_FORMAT:
            raise ValueError("its SHA-256 or its format is another")
        stored = cls(body["position"])
        stored.deduplication.restore(body["deduplication"])
        stored.clients = {name: ClientCounts(*counts) for name, counts in body["clients"].items()}
        return stored

    @classmethod
    def read(cls, directory: Path, first: int) -> StoredSegments:
        """Read the file; it is required if the log begins with the record `first` instead of 0."""
        path = directory / _FILE
        try:
            stored = cls.decode(path.read_bytes())
        except (OSError, ValueError, KeyError, TypeError) as error:
            if first == 0:
                # The log still has everything that the file would say.
                return cls()
            raise RecordsDamaged(
                f"{path} cannot be read ({error}), and the log before record {first} was removed. Without this file "
                f"segments could be learned from twice. Restore it from a backup."
            ) from error
        if stored.position < first:
            raise RecordsDamaged(
                f"{path} ends at record {stored.position}, and the log begins with {first}. Restore the newer file "
                f"from a backup."
            )
        return stored


def _digest(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
