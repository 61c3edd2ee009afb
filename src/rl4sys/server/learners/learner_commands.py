"""Commands of operators in a learner's log: what changes learning is a record, so that folding stays exact."""

from __future__ import annotations

import enum
import json
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from rl4sys.server.learners.stored_segments import StoredSegment

COMMAND_FORMAT = 2
"""The first byte of a record that is a command; that of a segment is 1, that of a pack 3."""
_HEADER = struct.Struct("<BI")


class CommandKind(enum.StrEnum):
    """What a command in a log does."""

    SET = "set"
    """Changes settings; `values` has them by dotted names."""
    FREEZE = "freeze"
    """Segments that follow are counted and not learned from."""
    UNFREEZE = "unfreeze"
    """Segments that follow are learned from."""
    INSTALL = "install"
    """The blob has the flat weights of the policy; `values` has the `steps` that they were trained for."""
    WARM_START = "warm_start"
    """The blob has the state of the algorithm, as `encode_state` writes it."""


class LearnerCommand(NamedTuple):
    """One record of the log that is a command."""

    kind: CommandKind
    values: Mapping[str, Any] = {}
    blob: bytes = b""

    def encode(self) -> bytes:
        """The payload of the record: format, length of a JSON text, the text, the blob."""
        text = json.dumps({"kind": self.kind.value, "values": self.values}, sort_keys=True).encode()
        return b"".join((_HEADER.pack(COMMAND_FORMAT, len(text)), text, self.blob))

    @classmethod
    def decode(cls, payload: bytes) -> LearnerCommand:
        """Read back what `encode` wrote. The log has already checked the bytes."""
        _, length = _HEADER.unpack_from(payload)
        begin = _HEADER.size + length
        raw = json.loads(payload[_HEADER.size : begin])
        try:
            kind = CommandKind(raw["kind"])
        except ValueError as error:
            raise ValueError(
                f"A record of the log is the command '{raw['kind']}'; this version knows {', '.join(CommandKind)}. "
                f"Serve the data directory with the version that wrote it."
            ) from error
        return cls(kind, raw["values"], payload[begin:])


def decode_record(payload: bytes) -> StoredSegment | LearnerCommand:
    """What one record of a learner's log is."""
    return LearnerCommand.decode(payload) if payload[:1] == bytes([COMMAND_FORMAT]) else StoredSegment.decode(payload)
