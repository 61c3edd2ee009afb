"""Pushes whose segments are zstd frames."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.server.clients import ScriptedClient, acknowledged, join_request

from rl4sys.server import InProcessTransport
from rl4sys.wire import RefusalReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.compression import compress_push
from rl4sys.wire.generated import training_pb2

Serve = Callable[..., InProcessTransport]


def compressed(client: ScriptedClient, *sequences: int) -> training_pb2.PushRequest:
    pushed = [training_pb2.PushedSegment(sequence=n, segment=client.encoded(n)) for n in sequences]
    request = training_pb2.PushRequest(
        session=client.joined.session, epoch=client.epoch, schema_hash=client.joined.schema_hash, segments=pushed
    )
    compress_push(request)
    assert all(one.uncompressed_bytes for one in request.segments)
    return request


def test_compressed_and_plain_segments_are_the_same(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    assert client.joined.accepts_zstd
    assert acknowledged(client.transport.push(compressed(client, 0, 1), 5.0)) == [0, 1]
    assert client.push([0, 1]).repeated_segments == 2


def test_a_damaged_frame_is_refused_alone(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    request = compressed(client, 0, 1)
    request.segments[0].uncompressed_bytes += 1
    reply = client.transport.push(request, 5.0)
    assert acknowledged(reply) == [1]
    assert [(one.sequence, one.reason) for one in reply.refused] == [(0, RefusalReason.MALFORMED)]


def test_more_than_a_message_may_have_is_refused_before_anything_is_allocated(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    request = compressed(client, 0)
    request.segments[0].uncompressed_bytes = 4_000_000_000
    with pytest.raises(CallFailed, match="once it is decompressed") as failed:
        client.transport.push(request, 5.0)
    assert failed.value.code is Code.INVALID_ARGUMENT
