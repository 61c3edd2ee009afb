"""Packs of short segments: stored as one record, known and refused segment by segment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.clients import DQN, TIMEOUT, ScriptedClient, acknowledged, eventually, join_request, synthetic_segment
from tests.server.conftest import THREADS

from rl4sys.experience import Segment
from rl4sys.records import RecordReader
from rl4sys.server import InProcessTransport, ServiceOptions
from rl4sys.server.learners.stored_segments import StoredSegment
from rl4sys.server.options import Rates, ServiceLimits
from rl4sys.wire import RefusalReason, encode_pack, encode_segment
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2

Serve = Callable[..., InProcessTransport]


def limited(**limits: Any) -> ServiceOptions:
    return replace(THREADS, limits=ServiceLimits(**limits))


def bandits(client: ScriptedClient, numbers: Sequence[int]) -> list[Segment]:
    return [synthetic_segment(client.spec, client.name, number, steps=1) for number in numbers]


def push_pack(client: ScriptedClient, first: int, segments: Sequence[Segment]) -> training_pb2.PushReply:
    return push_raw(client, first, encode_pack(client.form, segments), len(segments))


def push_raw(client: ScriptedClient, first: int, data: bytes, count: int) -> training_pb2.PushReply:
    pushed = training_pb2.PushedSegment(sequence=first, segment=data, count=count)
    request = training_pb2.PushRequest(
        session=client.joined.session, epoch=client.epoch, schema_hash=client.joined.schema_hash, segments=[pushed]
    )
    return client.transport.push(request, TIMEOUT)


def stored(data: Path, learner: str = "a") -> list[StoredSegment]:
    reader = RecordReader(data / "data" / "learners" / learner / "log", 0)
    try:
        return [StoredSegment.decode(record.payload) for record in reader.read(1 << 30)]
    finally:
        reader.close()


def test_a_server_says_how_many_segments_a_pack_may_have(serve: Serve) -> None:
    assert ScriptedClient(serve(), join_request("a")).joined.limits.max_pack_segments == 1_024


def test_a_pack_is_one_record_and_its_segments_are_acknowledged_counted_and_learned_from(
    serve: Serve, tmp_path: Path
) -> None:
    transport = serve()
    client = ScriptedClient(transport, join_request("a", DQN))
    assert acknowledged(push_pack(client, 0, bandits(client, range(30)))) == list(range(30))
    (record,) = stored(tmp_path)
    assert (record.sequence, record.segments, record.steps) == (0, 30, 30)
    eventually(lambda: transport.status(status_pb2.StatusRequest(), 5.0).learners[0].learned_steps == 30)
    learner = transport.status(status_pb2.StatusRequest(), 5.0).learners[0]
    assert learner.episodes == 30
    assert transport.status(status_pb2.StatusRequest(), 5.0).clients[0].stored_segments == 30


def test_a_repeated_pack_is_acknowledged_and_not_stored_again(serve: Serve, tmp_path: Path) -> None:
    client = ScriptedClient(serve(), join_request("a", DQN))
    push_pack(client, 0, bandits(client, range(10)))
    reply = push_pack(client, 0, bandits(client, range(10)))
    assert acknowledged(reply) == list(range(10))
    assert reply.repeated_segments == 10
    assert len(stored(tmp_path)) == 1


def test_of_a_pack_that_is_partly_known_only_the_rest_is_stored(serve: Serve, tmp_path: Path) -> None:
    client = ScriptedClient(serve(), join_request("a", DQN))
    segments = bandits(client, range(10))
    client.push_bytes({4: encode_segment(client.form, segments[4])})
    push_pack(client, 7, segments[7:9])
    reply = push_pack(client, 0, segments)
    assert acknowledged(reply) == list(range(10))
    assert reply.repeated_segments == 3
    assert sorted(number for record in stored(tmp_path) for number in record.sequences) == list(range(10))


def test_overlapping_packs_of_one_push_are_stored_once(serve: Serve, tmp_path: Path) -> None:
    client = ScriptedClient(serve(), join_request("a", DQN))
    segments = bandits(client, range(10))
    parts = [range(6), range(4, 10)]
    pushed = [
        training_pb2.PushedSegment(
            sequence=part.start, segment=encode_pack(client.form, segments[part.start : part.stop]), count=6
        )
        for part in parts
    ]
    request = training_pb2.PushRequest(
        session=client.joined.session, epoch=1, schema_hash=client.joined.schema_hash, segments=pushed
    )
    assert acknowledged(client.transport.push(request, TIMEOUT)) == list(range(10))
    assert sorted(number for record in stored(tmp_path) for number in record.sequences) == list(range(10))


def test_a_bad_segment_of_a_pack_is_refused_alone(serve: Serve, tmp_path: Path) -> None:
    client = ScriptedClient(serve(), join_request("a", DQN))
    segments = bandits(client, range(6))
    segments[2] = replace(segments[2], reward=np.array([1e30], np.float32))
    reply = push_pack(client, 0, segments)
    assert acknowledged(reply) == [0, 1, 3, 4, 5]
    assert [(refusal.sequence, refusal.reason) for refusal in reply.refused] == [
        (2, training_pb2.REFUSAL_REASON_REWARD_BOUNDS)
    ]
    assert [record.sequence for record in stored(tmp_path)] == [0, 1, 3, 4, 5]


def test_bytes_that_are_no_pack_are_refused_with_all_their_numbers(serve: Serve) -> None:
    transport = serve()
    client = ScriptedClient(transport, join_request("a", DQN))
    reply = push_raw(client, 5, b"\xff\xff", 7)
    (refusal,) = reply.refused
    assert (refusal.sequence, refusal.count) == (5, 7)
    assert RefusalReason(refusal.reason) is RefusalReason.MALFORMED
    assert transport.status(status_pb2.StatusRequest(), 5.0).clients[0].refused_segments == {"MALFORMED": 7}


@pytest.mark.parametrize("most", [0, 4])
def test_a_pack_that_is_larger_than_the_limit_breaks_the_contract(serve: Serve, most: int) -> None:
    client = ScriptedClient(serve(limited(max_pack_segments=most)), join_request("a", DQN))
    assert client.joined.limits.max_pack_segments == most
    with pytest.raises(CallFailed, match=f"A pack has 5 segments; at most {most}") as failed:
        push_pack(client, 0, bandits(client, range(5)))
    assert failed.value.code is Code.INVALID_ARGUMENT


def test_the_steps_of_a_pack_count_against_the_quota(serve: Serve) -> None:
    client = ScriptedClient(serve(limited(client_rates=Rates(steps_per_second=10))), join_request("a", DQN))
    push_pack(client, 0, bandits(client, range(10)))
    with pytest.raises(CallFailed, match="10 steps per second") as failed:
        push_pack(client, 10, bandits(client, range(10, 20)))
    assert failed.value.code is Code.RESOURCE_EXHAUSTED


def test_packs_are_known_after_a_restart(serve: Serve, tmp_path: Path) -> None:
    client = ScriptedClient(serve(), join_request("a", DQN))
    push_pack(client, 0, bandits(client, range(10)))
    again = ScriptedClient(serve(), join_request("a", DQN))
    reply = push_pack(again, 5, bandits(again, range(5, 15)))
    assert reply.repeated_segments == 5
    assert sorted(number for record in stored(tmp_path) for number in record.sequences) == list(range(15))
