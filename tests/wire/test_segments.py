import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from rl4sys.experience import Array, ArraySpec, DecidedBy, Segment, SegmentSchema
from rl4sys.wire import (
    RefusalReason,
    SegmentFormat,
    SegmentRefused,
    decode_checked_segment,
    decode_segment,
    encode_segment,
)
from rl4sys.wire.generated import experience_pb2, training_pb2

from .strategies import LANDER, RICH, formatted_segments, lander_segment, rich_segment
from .tampering import rebuilt

Change = Callable[[experience_pb2.Segment], object]


def received(form: SegmentFormat, data: bytes, client: str = "client") -> Segment:
    return decode_segment(form, data, client=client, sequence=7, max_steps=1000)


def arrays_of(segment: Segment) -> list[Array]:
    groups = (segment.observation, segment.extras, segment.carry)
    return [*(array for group in groups for array in group.values()), segment.action, segment.reward]


def require_equal(one: Segment, other: Segment) -> None:
    assert (one.stream, one.episode, one.start) == (other.stream, other.episode, other.start)
    assert (one.policy_version, one.ending, one.decided_by) == (other.policy_version, other.ending, other.decided_by)
    for got, sent in zip(arrays_of(one), arrays_of(other), strict=True):
        np.testing.assert_array_equal(got, sent, strict=True)


@given(formatted_segments())
def test_a_decoded_segment_equals_the_encoded_one(case: tuple[SegmentFormat, Segment]) -> None:
    form, segment = case
    data = encode_segment(form, segment)
    require_equal(received(form, data), segment)
    require_equal(decode_checked_segment(form, data, client=segment.stream.client), segment)


def test_a_segment_says_that_a_fallback_decided_it() -> None:
    segment = dataclasses.replace(rich_segment(), decided_by=DecidedBy.FALLBACK)
    data = encode_segment(RICH, segment)
    require_equal(received(RICH, data, "camera"), segment)
    require_equal(decode_checked_segment(RICH, data, client="camera"), segment)


def test_a_checked_segment_of_another_format_is_refused() -> None:
    data = encode_segment(RICH, rich_segment())
    with pytest.raises(SegmentRefused, match=r"columns\..*Its format has changed"):
        decode_checked_segment(LANDER, data, client="client")


@pytest.mark.parametrize(("form", "segment"), [(LANDER, lander_segment()), (RICH, rich_segment())])
def test_decoded_arrays_are_read_only(form: SegmentFormat, segment: Segment) -> None:
    data = encode_segment(form, segment)
    for decoded in (received(form, data), decode_checked_segment(form, data, client="client")):
        assert not any(array.flags.writeable for array in arrays_of(decoded))


def test_a_step_of_lunar_lander_takes_less_than_45_bytes_including_overhead() -> None:
    pushed = training_pb2.PushedSegment(sequence=10**9, segment=encode_segment(LANDER, lander_segment(100)))
    request = training_pb2.PushRequest(session="s" * 32, epoch=2**60, schema_hash=LANDER.hash, segments=[pushed])
    grpc_and_http_frames = 200
    assert len(request.SerializeToString()) + grpc_and_http_frames < 45 * 100


@pytest.mark.parametrize(("n", "width"), [(1, 1), (256, 1), (257, 2), (2**16, 2), (2**16 + 1, 4), (2**32 + 1, 8)])
def test_actions_are_sent_in_the_smallest_type_that_holds_every_choice(n: int, width: int) -> None:
    schema = SegmentSchema((ArraySpec("queue", "float32", ()),), ArraySpec("action", "int64", ()))
    segment = dataclasses.replace(lander_segment(2), observation={"queue": np.zeros(3, np.float32)}, extras={})
    segment = dataclasses.replace(segment, action=np.array([0, n - 1]))
    data = encode_segment(SegmentFormat(schema, (n,)), segment)
    assert len(experience_pb2.Segment.FromString(data).columns[1]) == 2 * width
    assert received(SegmentFormat(schema, (n,)), data).action.tolist() == [0, n - 1]


def set_column(place: int, data: bytes) -> Change:
    return lambda message: message.columns.__setitem__(place, data)


def set_header(**fields: Any) -> Change:
    return lambda message: [setattr(message, name, value) for name, value in fields.items()]


NAN, INFINITY = (np.array([value] * 3, "<f4").tobytes() for value in (np.nan, -np.inf))

WRONG: dict[str, tuple[Change, RefusalReason, str]] = {
    "short column": (
        set_column(0, bytes(47)),
        RefusalReason.MALFORMED,
        "observation 'image' has 47 bytes; expected 48",
    ),
    "long column": (set_column(4, bytes(13)), RefusalReason.MALFORMED, "reward has 13 bytes; expected 12"),
    "no column": (lambda m: m.columns.pop(), RefusalReason.MALFORMED, "7 columns"),
    "one more column": (lambda m: m.columns.append(b""), RefusalReason.MALFORMED, "9 columns"),
    "no steps": (set_header(steps=0), RefusalReason.MALFORMED, "0 steps"),
    "steps that are not there": (set_header(steps=900), RefusalReason.MALFORMED, "expected 10812"),
    "too many steps": (set_header(steps=2**32 - 1), RefusalReason.TOO_LARGE, "at most 1000"),
    "a mask of twos": (set_column(2, b"\2" * 20), RefusalReason.OUT_OF_RANGE, "neither 0 nor 1"),
    "a fourth choice": (set_column(3, b"\3\0" * 6), RefusalReason.OUT_OF_RANGE, "action contains 3"),
    "NaN reward": (set_column(4, NAN), RefusalReason.NOT_FINITE, "reward contains NaN"),
    "infinite log_prob": (set_column(5, INFINITY), RefusalReason.NOT_FINITE, "extras 'log_prob'"),
    "NaN carry": (set_column(6, NAN), RefusalReason.NOT_FINITE, "carry 'core.hidden'"),
    "unknown ending": (set_header(ending=9), RefusalReason.MALFORMED, "ending 9"),
    "unknown decider": (set_header(decided_by=7), RefusalReason.MALFORMED, "decided_by 7"),
    "no ending": (set_header(ending=0), RefusalReason.MALFORMED, "ending 0"),
    "huge episode": (set_header(episode=2**63), RefusalReason.MALFORMED, "larger than"),
    "no agent": (set_header(agent=""), RefusalReason.MALFORMED, "agent"),
    "endless agent": (set_header(agent="x" * 257), RefusalReason.MALFORMED, "agent"),
}


@pytest.mark.parametrize(("change", "reason", "words"), WRONG.values(), ids=list(WRONG))
def test_a_bad_segment_is_refused_with_its_reason(change: Change, reason: RefusalReason, words: str) -> None:
    data = rebuilt(encode_segment(RICH, rich_segment()), change)
    with pytest.raises(SegmentRefused, match=words) as refusal:
        received(RICH, data, client="camera")
    assert refusal.value.reason is reason
    assert "Client 'camera' sent segment 7" in str(refusal.value)


SPOILED: dict[str, dict[str, Any]] = {
    "dtype": {"action": np.zeros(3, np.int32)},
    "shape": {"reward": np.zeros((3, 1), np.float32)},
    "choice": {"action": np.full(3, -1)},
    "missing array": {"extras": {}},
    "unknown array": {"carry": {"memory": np.zeros(3, np.float32)}},
    "negative number": {"episode": -1},
}


@pytest.mark.parametrize("changes", SPOILED.values(), ids=list(SPOILED))
def test_a_badly_recorded_segment_is_refused_before_it_is_sent(changes: dict[str, Any]) -> None:
    with pytest.raises(SegmentRefused, match="Client 'lander' recorded a segment"):
        encode_segment(LANDER, dataclasses.replace(lander_segment(3), **changes))
