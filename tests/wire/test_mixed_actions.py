"""Mixed actions on the wire: choices as floats, checked before anything is learned from them."""

import numpy as np
import pytest

from rl4sys.experience import ArraySpec, Ending, Segment, StreamKey
from rl4sys.policy import Head, MixedAction, PolicySpec, ProgramBuilder
from rl4sys.wire import (
    ContractViolation,
    RefusalReason,
    SegmentFormat,
    SegmentRefused,
    decode_action,
    decode_segment,
    encode_action,
    encode_segment,
)
from rl4sys.wire.generated import policy_pb2

ACTION = MixedAction((2, 3), (-1.0,), (1.0,))


def form() -> SegmentFormat:
    builder = ProgramBuilder((ArraySpec("observation", "float32", (1,)),))
    output = builder.linear("observation", 6, "out")
    log_std = builder.tensor("log_std", 1)
    return SegmentFormat.of(PolicySpec(ACTION, builder.program(), Head("mixed", (output,), (log_std,))))


def segment(*action: float) -> Segment:
    return Segment(
        StreamKey("client", "agent", 0),
        0,
        0,
        0,
        Ending.TERMINATED,
        {"observation": np.zeros((2, 1), np.float32)},
        np.array([action], np.float32),
        np.zeros(1, np.float32),
        {"log_prob": np.zeros(1, np.float32)},
        {},
    )


def received(data: bytes) -> Segment:
    return decode_segment(form(), data, client="client", sequence=0, max_steps=10)


def test_a_mixed_action_round_trips() -> None:
    assert decode_action(encode_action(ACTION)) == ACTION
    assert received(encode_segment(form(), segment(1, 2, 0.25))).action.tolist() == [[1, 2, 0.25]]


@pytest.mark.parametrize("choices", [(2, 0), (0, 3), (-1, 0), (0.5, 0)])
def test_a_choice_out_of_range_is_refused_by_sender_and_receiver(choices: tuple[float, float]) -> None:
    with pytest.raises(SegmentRefused, match="begins with") as sent:
        encode_segment(form(), segment(*choices, 0.0))
    assert sent.value.reason is RefusalReason.OUT_OF_RANGE
    sound, wrong = (np.array(action, np.float32).tobytes() for action in ((1, 2, 0.25), (*choices, 0.25)))
    data = encode_segment(form(), segment(1, 2, 0.25)).replace(sound, wrong)
    with pytest.raises(SegmentRefused, match="begins with") as got:
        received(data)
    assert got.value.reason is RefusalReason.OUT_OF_RANGE


def test_numbers_alone_or_too_many_choices_are_no_mixed_action() -> None:
    for sizes in ((), (1 << 25,)):
        message = policy_pb2.ActionSpec(mixed=policy_pb2.MixedAction(sizes=sizes, low=[0.0], high=[1.0]))
        with pytest.raises(ContractViolation, match="choices"):
            decode_action(message)
