"""Policies whose programs read noise."""

from __future__ import annotations

from typing import Any

import pytest

from rl4sys.experience import ArraySpec
from rl4sys.policy import BoxAction, Head, PolicySpec, ProgramBuilder
from rl4sys.wire import ContractViolation, decode_policy, encode_policy, require_decides

WHOLE: dict[str, Any] = {"noise": "chance", "size": 2, "std": 1.0}


def spec(settings: dict[str, Any]) -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("seen", "float32", (1,)),))
    joined = builder.op("concat", ("seen", builder.chance("chance", 2)), (3,))
    value = builder.linear(joined, 1, "value")
    head = Head("noise_conditioned", (value,), (builder.tensor("epsilon", 1),), settings=settings)
    return PolicySpec(BoxAction((-1.0,), (1.0,)), builder.program(), head)


def test_a_policy_that_reads_noise_is_sent_and_decides() -> None:
    arrived = decode_policy(encode_policy(spec(WHOLE)))
    assert arrived == spec(WHOLE)
    require_decides(arrived)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"noise": "elsewhere"}, r"concat reads \['chance'\]"),
        ({"noise": "seen"}, "'seen' is assigned twice"),
        ({"noise": ""}, "has no name"),
        ({"size": 0}, "'noise' and 'size'"),
        ({"size": 4097}, "draws 4097 numbers"),
        ({"size": 2**62}, "draws 4611686018427387904 numbers"),
        ({"std": -0.5}, r"deviation -0\.5"),
        ({"std": "much"}, "'std' of noise_conditioned is 'much'"),
    ],
)
def test_noise_of_an_invalid_size_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ContractViolation, match=complaint):
        decode_policy(encode_policy(spec(WHOLE | changes)))
