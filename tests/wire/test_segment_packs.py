from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from rl4sys.experience import DecidedBy, Ending, Segment, StreamKey
from rl4sys.wire import (
    ContractViolation,
    RefusalReason,
    SegmentFormat,
    SegmentRefused,
    decode_checked_pack,
    decode_pack,
    encode_pack,
    encode_segment,
    packed_steps,
    split_pack,
)
from rl4sys.wire.generated import experience_pb2

from .strategies import LANDER, RICH, lander_segment, rich_segment
from .test_segments import require_equal

Change = Callable[[experience_pb2.SegmentPack], object]


def several(make: Callable[[int], Segment], *steps: int) -> list[Segment]:
    """Segments of several lanes and episodes, with every ending."""
    client = make(1).stream.client
    return [
        dataclasses.replace(
            make(count),
            stream=StreamKey(client, "agent", number % 2),
            episode=10**12 + number,
            start=number % 3,
            ending=list(Ending)[number % 3],
            policy_version=4,
        )
        for number, count in enumerate(steps)
    ]


def received(
    form: SegmentFormat, data: bytes, count: int, client: str = "client", max_steps: int = 1000
) -> list[Segment]:
    pack = decode_pack(form, data, client=client, count=count, max_steps=max_steps)
    return list(pack.segments())


@pytest.mark.parametrize(("form", "make"), [(LANDER, lander_segment), (RICH, rich_segment)], ids=["lander", "rich"])
def test_the_segments_of_a_pack_are_what_they_are_alone(form: SegmentFormat, make: Callable[[int], Segment]) -> None:
    segments = several(make, 1, 3, 1, 2, 5)
    client = segments[0].stream.client
    data = encode_pack(form, segments)
    checked = decode_checked_pack(form, data, client=client, count=5)
    for decoded in (received(form, data, 5, client), list(checked.segments())):
        for got, sent in zip(decoded, segments, strict=True):
            require_equal(got, sent)
    assert split_pack(data, 5) == [encode_segment(form, segment) for segment in segments]
    assert packed_steps(data, 5) == 12


def test_a_part_of_a_pack_has_its_segments() -> None:
    segments = several(rich_segment, 1, 3, 2, 1)
    pack = decode_checked_pack(RICH, encode_pack(RICH, segments), client=segments[0].stream.client, count=4)
    for got, sent in zip(pack.part(1, 3).segments(), segments[1:3], strict=True):
        require_equal(got, sent)
    assert len(pack.part(2, 2)) == 0


def test_times_and_what_decided_are_kept() -> None:
    segments = [
        dataclasses.replace(lander_segment(2), decided_by=DecidedBy.FALLBACK, elapsed=np.array([0.5, t], np.float32))
        for t in (1.0, 2.0)
    ]
    data = encode_pack(LANDER, segments)
    for got, sent in zip(received(LANDER, data, 2, "lander"), segments, strict=True):
        require_equal(got, sent)
        assert got.elapsed is not None
        assert sent.elapsed is not None
        assert got.elapsed.tolist() == sent.elapsed.tolist()
    assert split_pack(data, 2) == [encode_segment(LANDER, segment) for segment in segments]


def test_a_one_step_episode_takes_little_more_than_its_values() -> None:
    segments = [dataclasses.replace(lander_segment(1), episode=2**40 + number) for number in range(1000)]
    values = 2 * 8 * 4 + 1 + 4 + 4
    assert len(encode_pack(LANDER, segments)) / 1000 < values + 9
    assert len(encode_segment(LANDER, segments[0])) > values + 30


WRONG: dict[str, tuple[Change, RefusalReason]] = {
    "a lane too few": (lambda pack: setattr(pack, "lane", bytes(16)), RefusalReason.MALFORMED),
    "no steps": (lambda pack: setattr(pack, "steps", bytes(4)), RefusalReason.MALFORMED),
    "more steps than rows": (lambda pack: setattr(pack, "steps", b"\x02\0\0\0"), RefusalReason.MALFORMED),
    "an unknown ending": (lambda pack: setattr(pack, "ending", b"\x09"), RefusalReason.MALFORMED),
    "a huge episode": (lambda pack: setattr(pack, "episode", b"\xff" * 8), RefusalReason.MALFORMED),
    "a missing observation": (lambda pack: pack.observation.pop(), RefusalReason.MALFORMED),
    "an infinite reward": (lambda pack: setattr(pack, "reward", b"\0\0\x80\x7f" * 3), RefusalReason.NOT_FINITE),
    "an action that does not exist": (
        lambda pack: setattr(pack, "action", b"\x00\x09\x00"),
        RefusalReason.OUT_OF_RANGE,
    ),
    "time that runs backwards": (lambda pack: setattr(pack, "elapsed", b"\0\0\x80\xbf" * 3), RefusalReason.NOT_FINITE),
    "no agent": (lambda pack: setattr(pack, "agent", ""), RefusalReason.MALFORMED),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_pack_that_breaks_the_contract_is_refused(case: str) -> None:
    change, reason = WRONG[case]
    message = experience_pb2.SegmentPack.FromString(encode_pack(LANDER, [lander_segment(1)] * 3))
    change(message)
    with pytest.raises(SegmentRefused) as refused:
        received(LANDER, message.SerializeToString(), 3)
    assert refused.value.reason is reason


def test_a_pack_with_too_many_steps_is_refused() -> None:
    with pytest.raises(SegmentRefused, match="it has 6 steps; at most 5"):
        received(LANDER, encode_pack(LANDER, [lander_segment(3)] * 2), 2, max_steps=5)


def test_what_is_not_a_pack_cannot_be_split() -> None:
    for data in (b"\xff", b"", encode_segment(LANDER, lander_segment(1))):
        with pytest.raises(ContractViolation):
            split_pack(data, 2)
        assert packed_steps(data, 2) == 0


def test_segments_that_are_not_sound_are_not_packed() -> None:
    poisoned = dataclasses.replace(lander_segment(1), reward=np.array([np.nan], np.float32))
    with pytest.raises(SegmentRefused, match="NaN or infinity"):
        encode_pack(LANDER, [lander_segment(1), poisoned])
    with pytest.raises(SegmentRefused, match="packed"):
        encode_pack(RICH, [lander_segment(1)] * 2)
