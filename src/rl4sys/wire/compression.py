"""Compressed pushes: segments as zstd frames, where both sides know them and the frames are smaller."""

from __future__ import annotations

from rl4sys.weights import packing
from rl4sys.wire.generated import training_pb2

_LEAST = 128
"""Bytes of a segment below which it is not worth trying."""


def compress_push(request: training_pb2.PushRequest) -> None:
    """Replace the segments of a push by frames where that is smaller."""
    for pushed in request.segments:
        if len(pushed.segment) < _LEAST:
            continue
        frame = packing.compress(pushed.segment)
        if len(frame) < len(pushed.segment):
            pushed.uncompressed_bytes, pushed.segment = len(pushed.segment), frame


def uncompressed_bytes(request: training_pb2.PushRequest) -> int:
    """How many bytes the segments of a push say that they have once they are decompressed."""
    return sum(pushed.uncompressed_bytes or len(pushed.segment) for pushed in request.segments)


def decompress_push(request: training_pb2.PushRequest) -> None:
    """The segments as they were recorded. A damaged frame stays as it is, which no segment is, and is refused alone.

    Check `uncompressed_bytes` before: so much is allocated.
    """
    for pushed in request.segments:
        if pushed.uncompressed_bytes == 0:
            continue
        try:
            pushed.segment = packing.decompress(pushed.segment, pushed.uncompressed_bytes)
            pushed.uncompressed_bytes = 0
        except packing.CorruptPayload:
            continue
