"""Compressed pushes: what clients send as frames, and what the server takes."""

from typing import Any

import pytest

from rl4sys.wire.compression import compress_push, decompress_push
from rl4sys.wire.generated import training_pb2

from .golden import strict_json

INDEX = strict_json("pushes.json")


def pushed(segment: bytes, uncompressed_bytes: int = 0) -> training_pb2.PushRequest:
    one = training_pb2.PushedSegment(segment=segment, uncompressed_bytes=uncompressed_bytes)
    return training_pb2.PushRequest(segments=[one])


@pytest.mark.parametrize("case", INDEX["segments"], ids=lambda case: case["name"])
def test_a_segment_is_sent_as_a_frame_where_that_is_smaller(case: dict[str, Any]) -> None:
    segment = bytes.fromhex(case["segment"])
    request = pushed(segment)
    compress_push(request)
    assert request.segments[0].uncompressed_bytes == (len(segment) if case["is_frame"] else 0)
    assert len(request.segments[0].segment) <= len(segment)
    decompress_push(request)
    assert request == pushed(segment)


@pytest.mark.parametrize("case", INDEX["frames"], ids=lambda case: case["name"])
def test_a_frame_is_taken_or_refused(case: dict[str, Any]) -> None:
    request = pushed(bytes.fromhex(case["frame"]), case["uncompressed_bytes"])
    decompress_push(request)
    if case["segment"] is None:
        assert request.segments[0].uncompressed_bytes == case["uncompressed_bytes"]
    else:
        assert request == pushed(bytes.fromhex(case["segment"]))
