import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from rl4sys.policy import NumpyPolicy, Op, PolicySpec, Tensor
from rl4sys.wire import ContractViolation, decode_policy, encode_policy, parse
from rl4sys.wire.generated import policy_pb2

from .strategies import policies, recurrent_policy

Change = Callable[[policy_pb2.PolicySpec], Any]


@given(policies())
def test_a_decoded_policy_equals_the_encoded_one(spec: PolicySpec) -> None:
    data = encode_policy(spec).SerializeToString()
    again = decode_policy(parse(policy_pb2.PolicySpec, data))
    assert again == spec
    assert again.to_json() == spec.to_json()


def test_a_decoded_policy_can_act() -> None:
    NumpyPolicy(decode_policy(encode_policy(recurrent_policy())))


def test_bools_and_integers_keep_their_types() -> None:
    settings = {"truth": True, "whole": 1, "real": 1.0, "wholes": [1, 2], "reals": [1.0, 2.0], "text": "tanh"}
    spec = recurrent_policy()
    ops = (dataclasses.replace(spec.program.ops[0], settings=settings), *spec.program.ops[1:])
    again = decode_policy(encode_policy(dataclasses.replace(spec, program=dataclasses.replace(spec.program, ops=ops))))
    got = again.program.ops[0].settings
    assert {name: (type(value), value) for name, value in got.items()} == {
        name: (type(value), value) for name, value in settings.items()
    }


BROKEN: dict[str, tuple[Change, str]] = {
    "no action": (lambda m: m.ClearField("action"), "does not know the action's kind"),
    "no choices": (lambda m: m.action.discrete.ClearField("n"), "choices"),
    "no parts": (lambda m: m.action.multi_discrete.SetInParent(), "choices"),
    "empty box": (lambda m: m.action.box.SetInParent(), "bounds"),
    "box of NaN": (lambda m: m.action.box.MergeFrom(policy_pb2.BoxAction(low=[float("nan")], high=[1])), "bounds"),
    "box upside down": (lambda m: m.action.box.MergeFrom(policy_pb2.BoxAction(low=[2], high=[1])), "bounds"),
    "no head": (lambda m: m.ClearField("head"), "kind 0"),
    "a head from the future": (lambda m: setattr(m.head, "kind", 77), "kind 77"),
    "a head that reads nothing known": (lambda m: m.head.inputs.append("ghost"), "ghost"),
    "a mask that is no observation": (lambda m: setattr(m.head, "mask", "r1"), "the mask reads"),
    "a tensor that is missing": (lambda m: m.program.tensors.pop(), "linear reads"),
    "a tensor twice": (lambda m: m.program.tensors.append(m.program.tensors[0]), "same name"),
    "endless weights": (lambda m: m.program.tensors.add(name="big", shape=[2**31]), "at most"),
    "a register twice": (lambda m: m.program.ops.append(m.program.ops[0]), "assigned twice"),
    "ops in another order": (lambda m: m.program.ops.insert(0, m.program.ops.pop()), "by then"),
    "an op without a name": (lambda m: m.program.ops[0].ClearField("kind"), "An op"),
    "a memory from nowhere": (lambda m: setattr(m.program.carry[0], "next", "ghost"), "the memory reads"),
    "a setting without a value": (
        lambda m: m.head.settings["x"].SetInParent(),
        "does not know the kind of setting 'x'",
    ),
    "an infinite setting": (lambda m: setattr(m.head.settings["x"], "real", float("inf")), "finite"),
}


@pytest.mark.parametrize(("change", "words"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_policy_is_refused_with_what_is_wrong(change: Change, words: str) -> None:
    message = encode_policy(recurrent_policy())
    change(message)
    with pytest.raises(ContractViolation, match=words):
        decode_policy(message)


def test_an_integer_beyond_64_bits_is_refused() -> None:
    spec = recurrent_policy()
    op = Op("scale", ("r",), (), (), {"factor": 2**63})
    with pytest.raises(ContractViolation, match="64 bits"):
        encode_policy(dataclasses.replace(spec, program=dataclasses.replace(spec.program, ops=(op,))))


def test_weights_are_counted_over_all_tensors() -> None:
    spec = recurrent_policy()
    tensors = (*spec.program.tensors, Tensor("a", (2**30,)), Tensor("b", (2**30,)))
    with pytest.raises(ContractViolation, match="values; at most"):
        decode_policy(
            encode_policy(dataclasses.replace(spec, program=dataclasses.replace(spec.program, tensors=tensors)))
        )
