"""Chance, remembered actions and models on the wire."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rl4sys.experience import ArraySpec
from rl4sys.policy import BoxAction, Chance, Head, Memory, PolicySpec, Program, ProgramBuilder, Tensor
from rl4sys.wire import ContractViolation, decode_policy, encode_policy, require_decides

BOX = BoxAction((-1.0,), (1.0,))


def spec(**settings: Any) -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("seen", "float32", (1,)),))
    builder.memory("previous", (1,), "done")
    joined = builder.joined(["seen", "previous", builder.chance("u", 2, "uniform")])
    value = builder.linear(joined, 1, "value")
    return PolicySpec(BOX, builder.program(), Head("deterministic", (value,), settings={"action": "done"} | settings))


def planned() -> PolicySpec:
    state = ArraySpec("state", "float32", (2,))
    model = Program((ArraySpec("action", "float32", (1,)),), (), (Tensor("w", (3,)),), (Memory("s", (2,), "s"),))
    program = Program((state,), (), (Tensor("w", (3,)), Tensor("v", (1,))))
    return PolicySpec(BOX, program, Head("planned", ("state",)), model)


def test_a_policy_that_draws_and_remembers_is_sent_and_decides() -> None:
    arrived = decode_policy(encode_policy(spec()))
    assert arrived == spec()
    require_decides(arrived)


def test_a_message_without_chance_and_model_is_what_it_always_was() -> None:
    whole = spec()
    plain = replace(whole, program=replace(whole.program, chance=()), head=Head("deterministic", ("seen",)))
    assert {field.name for field, _ in encode_policy(plain).ListFields()} == {"action", "program", "head"}


@pytest.mark.parametrize(
    ("chance", "complaint"),
    [
        (Chance("u", 0, "uniform"), r"draws \[0\] numbers"),
        (Chance("u", 4097, "normal"), r"draws \[4097\] numbers"),
        (Chance("seen", 2, "uniform"), "'seen' is assigned twice"),
        (Chance("", 2, "uniform"), "A chance register"),
        (Chance("elsewhere", 2, "uniform"), r"concat reads \['u'\]"),
    ],
)
def test_invalid_chance_is_refused(chance: Chance, complaint: str) -> None:
    broken = replace(spec(), program=replace(spec().program, chance=(chance,)))
    with pytest.raises(ContractViolation, match=complaint):
        decode_policy(encode_policy(broken))


def test_a_distribution_from_the_future_is_refused() -> None:
    message = encode_policy(spec())
    message.program.chance[0].distribution = 9
    with pytest.raises(ContractViolation, match="does not know"):
        decode_policy(message)


def test_an_action_that_no_memory_takes_is_refused() -> None:
    with pytest.raises(ContractViolation, match="which no memory reads"):
        decode_policy(encode_policy(spec(action="elsewhere")))


def test_a_memory_of_another_size_than_the_action_is_refused() -> None:
    program = replace(spec().program, carry=(Memory("previous", (2,), "done"),))
    with pytest.raises(ContractViolation, match="cannot be run here"):
        require_decides(replace(spec(), program=program))


def test_a_planned_policy_arrives_with_its_model() -> None:
    assert decode_policy(encode_policy(planned())) == planned()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"model": None}, "planned comes without a model"),
        ({"head": Head("deterministic", ("state",))}, "deterministic comes with a model"),
        ({"model": replace(planned().model, tensors=(Tensor("w", (4,)),))}, r"tensors \['w'\]"),
        ({"model": replace(planned().model, carry=(Memory("s", (2,), "t"),))}, r"reads \['t'\]"),
    ],
)
def test_an_unsound_model_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ContractViolation, match=complaint):
        decode_policy(encode_policy(replace(planned(), **changes)))


def test_a_memory_above_one_mebibyte_is_refused() -> None:
    large = replace(spec().program, carry=(Memory("previous", (1,), "done"), Memory("held", (1 << 18,), "held")))
    with pytest.raises(ContractViolation, match="memory takes 1,048,580 bytes"):
        decode_policy(encode_policy(replace(spec(), program=large)))
