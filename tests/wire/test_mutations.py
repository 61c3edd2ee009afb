"""Damaged messages: whatever arrives becomes a valid object or a declared error, never anything else."""

import random
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

from rl4sys.policy import Decision
from rl4sys.weights import ModelStore
from rl4sys.wire import (
    FAILURE_METADATA,
    ContractViolation,
    Failure,
    Question,
    SegmentFormat,
    SegmentRefused,
    decode_decision,
    decode_pack,
    decode_patch,
    decode_policy,
    decode_question,
    decode_segment,
    encode_decision,
    encode_pack,
    encode_patch,
    encode_policy,
    encode_question,
    encode_segment,
    parse,
    split_pack,
)
from rl4sys.wire.generated import experience_pb2, policy_pb2, training_pb2, weights_pb2

from .strategies import LANDER, RICH, lander_segment, recurrent_policy, rich_segment
from .tampering import mutated

RICH_SEGMENT = rich_segment()
MEMORY = {name: np.repeat(array[None], 4, axis=0) for name, array in RICH_SEGMENT.carry.items()}
QUESTION = Question("left", 0, 5, RICH_SEGMENT.observation, MEMORY, 4)
DECISION = Decision(rich_segment(4).action, rich_segment(4).extras, MEMORY)
WHOLE = next(encode_patch(ModelStore(np.linspace(0, 1, 50, dtype=np.float32)).patch(None)))


def read_segment(form: SegmentFormat) -> Callable[[bytes], object]:
    def read(data: bytes) -> object:
        segment = decode_segment(form, data, client="client", sequence=0, max_steps=1000)
        form.schema.check(segment)
        return encode_segment(form, segment)

    return read


def read_policy(data: bytes) -> object:
    return encode_policy(decode_policy(parse(policy_pb2.PolicySpec, data)))


def read_pack(form: SegmentFormat) -> Callable[[bytes], object]:
    def read(data: bytes) -> object:
        with suppress(ContractViolation):
            split_pack(data, 2)
        pack = decode_pack(form, data, client="client", count=2, max_steps=1000)
        return [encode_segment(form, segment) for segment in pack.segments()]

    return read


def read_push(data: bytes) -> object:
    request = parse(training_pb2.PushRequest, data)
    return [read_segment(LANDER)(pushed.segment) for pushed in request.segments]


PUSH = training_pb2.PushRequest(
    session="session",
    epoch=3,
    schema_hash=LANDER.hash,
    segments=[
        training_pb2.PushedSegment(sequence=n, segment=encode_segment(LANDER, lander_segment(2))) for n in (1, 2)
    ],
)
CASES: dict[str, tuple[bytes, Callable[[bytes], object]]] = {
    "segment": (encode_segment(LANDER, lander_segment(2)), read_segment(LANDER)),
    "rich segment": (encode_segment(RICH, RICH_SEGMENT), read_segment(RICH)),
    "pack": (encode_pack(LANDER, [lander_segment(2), lander_segment(1)]), read_pack(LANDER)),
    "rich pack": (encode_pack(RICH, [RICH_SEGMENT, RICH_SEGMENT]), read_pack(RICH)),
    "push": (PUSH.SerializeToString(), read_push),
    "policy": (encode_policy(recurrent_policy()).SerializeToString(), read_policy),
    "schema": (
        RICH.to_message().SerializeToString(),
        lambda data: SegmentFormat.from_message(parse(experience_pb2.SegmentSchema, data)).to_message(),
    ),
    "patch": (
        WHOLE.SerializeToString(),
        lambda data: list(encode_patch(decode_patch([parse(weights_pb2.PatchChunk, data)], 50))),
    ),
    "question": (
        encode_question(RICH, QUESTION, "session").SerializeToString(),
        lambda data: decode_question(RICH, parse(training_pb2.ActRequest, data), max_rows=16),
    ),
    "decision": (
        encode_decision(RICH, DECISION, 3).SerializeToString(),
        lambda data: decode_decision(RICH, parse(training_pb2.ActReply, data), rows=4),
    ),
    "failure": (
        Failure().to_metadata()[1] + b"\x10\x05",
        lambda data: Failure.from_metadata([(FAILURE_METADATA, data)]),
    ),
}
EACH = 2500


@pytest.mark.parametrize("case", CASES)
def test_a_damaged_message_becomes_a_valid_object_or_a_declared_error(case: str) -> None:
    data, read = CASES[case]
    read(data)
    for seed in range(EACH):
        damaged = mutated(data, random.Random(f"{case}/{seed}"))
        try:
            read(damaged)
        except (ContractViolation, SegmentRefused):
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}: {damaged.hex()}") from error
