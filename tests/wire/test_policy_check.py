"""Inconsistent policies are detected before they decide."""

from __future__ import annotations

import dataclasses

import pytest
from tests.client.fake_server import small_policy
from tests.wire.strategies import recurrent_policy

from rl4sys.policy import DiscreteAction, Head, Op, PolicySpec, Tensor
from rl4sys.wire import ContractViolation, require_decides

SPEC = small_policy()


def with_ops(*ops: Op) -> PolicySpec:
    return dataclasses.replace(SPEC, program=dataclasses.replace(SPEC.program, ops=(*SPEC.program.ops, *ops)))


def with_tensor(name: str, *shape: int) -> PolicySpec:
    tensors = tuple(Tensor(name, shape) if tensor.name == name else tensor for tensor in SPEC.program.tensors)
    return dataclasses.replace(SPEC, program=dataclasses.replace(SPEC.program, tensors=tensors))


@pytest.mark.parametrize("spec", [SPEC, small_policy(masked=True), small_policy(recurrent=True), recurrent_policy()])
def test_a_consistent_policy_is_accepted(spec: PolicySpec) -> None:
    require_decides(spec)


@pytest.mark.parametrize(
    "spec",
    [
        with_tensor("actor.0.weight", 7, 8),
        with_tensor("actor.0.bias", 3),
        with_tensor("actor.0.weight", 8),
        dataclasses.replace(SPEC, action=DiscreteAction(5)),
        dataclasses.replace(SPEC, head=Head("gaussian", SPEC.head.inputs)),
        dataclasses.replace(SPEC, head=Head("categorical", ("observation",))),
        dataclasses.replace(SPEC, head=Head("categorical", ())),
        with_ops(Op("attention", ("x",), ("observation",))),
        with_ops(Op("add", ("x",), ("observation",))),
        with_ops(Op("channels_first", ("x",), ("observation",))),
        with_ops(
            Op("conv2d", ("x",), ("observation",), ("actor.0.weight", "actor.0.bias"), {"stride": 0, "padding": 0})
        ),
        with_ops(Op("scale", ("x",), ("observation",), (), {"padding": 10**9})),
        with_ops(Op("leaky_relu", ("x",), ("observation",), (), {"slope": "steep"})),
    ],
)
def test_an_inconsistent_policy_is_refused(spec: PolicySpec) -> None:
    with pytest.raises(ContractViolation, match="cannot be run here"):
        require_decides(spec)
