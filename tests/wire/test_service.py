"""The generated service over a real socket."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest

from rl4sys.weights import ModelStore
from rl4sys.wire import (
    Failure,
    FailureReason,
    SegmentFormat,
    covered,
    decode_patch,
    decode_policy,
    decode_segment,
    encode_patch,
    encode_policy,
    encode_segment,
    to_ranges,
)
from rl4sys.wire.generated import training_pb2, weights_pb2
from rl4sys.wire.generated.training_pb2_grpc import TrainingServicer, TrainingStub, add_TrainingServicer_to_server

from .strategies import LANDER, lander_segment, recurrent_policy

STORE = ModelStore(np.random.default_rng(0).standard_normal(5000, np.float32))
FULL = Failure(FailureReason.INBOX_FULL, retry_after_ms=250)


class Echo(TrainingServicer):
    """The smallest server that the contract allows."""

    def Join(self, request: training_pb2.JoinRequest, context: grpc.ServicerContext) -> training_pb2.JoinReply:
        explore = encode_policy(recurrent_policy())
        return training_pb2.JoinReply(schema=LANDER.to_message(), schema_hash=LANDER.hash, explore=explore)

    def Push(self, request: training_pb2.PushRequest, context: grpc.ServicerContext) -> training_pb2.PushReply:
        for pushed in request.segments:
            decode_segment(LANDER, pushed.segment, client="client", sequence=pushed.sequence, max_steps=100)
        return training_pb2.PushReply(acknowledged=to_ranges(pushed.sequence for pushed in request.segments))

    def Pull(
        self, request: training_pb2.PullRequest, context: grpc.ServicerContext
    ) -> Iterator[weights_pb2.PatchChunk]:
        yield from encode_patch(STORE.patch(None), 1000)

    def Act(self, request: training_pb2.ActRequest, context: grpc.ServicerContext) -> None:
        context.set_trailing_metadata([FULL.to_metadata()])
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "The inbox is full.")


@pytest.fixture(scope="module")
def training() -> Iterator[TrainingStub]:
    server = grpc.server(ThreadPoolExecutor(2))
    add_TrainingServicer_to_server(Echo(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield TrainingStub(channel)
    server.stop(None).wait()


def test_the_join_reply_has_the_schema_and_the_policy(training: TrainingStub) -> None:
    reply = training.Join(training_pb2.JoinRequest(client="client"), timeout=10)
    assert SegmentFormat.from_message(reply.schema).hash == reply.schema_hash == LANDER.hash
    assert decode_policy(reply.explore) == recurrent_policy()


def test_pushed_segments_are_acknowledged_by_their_numbers(training: TrainingStub) -> None:
    data = encode_segment(LANDER, lander_segment())
    segments = [training_pb2.PushedSegment(sequence=sequence, segment=data) for sequence in (4, 5, 9)]
    reply = training.Push(training_pb2.PushRequest(segments=segments), timeout=10)
    assert covered(reply.acknowledged, range(10)) == {4, 5, 9}


def test_a_patch_larger_than_a_chunk_arrives_complete(training: TrainingStub) -> None:
    assert decode_patch(training.Pull(training_pb2.PullRequest(), timeout=10), 5000) == STORE.patch(None)


def test_a_full_inbox_says_how_long_to_wait(training: TrainingStub) -> None:
    with pytest.raises(grpc.RpcError) as error:
        training.Act(training_pb2.ActRequest(), timeout=10)
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert Failure.from_metadata(error.value.trailing_metadata()) == FULL
