"""Policies that remember their last action."""

import math

import numpy as np
import pytest

from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import (
    ActionSpec,
    BoxAction,
    DiscreteAction,
    Head,
    MixedAction,
    MultiDiscreteAction,
    NumpyPolicy,
    PolicySpec,
    ProgramBuilder,
    action_encoder,
    output_size,
)

ACTIONS: dict[str, tuple[ActionSpec, list, list]] = {
    "discrete": (DiscreteAction(3, start=1), [2, 0], [[0, 0, 1], [1, 0, 0]]),
    "multi_discrete": (MultiDiscreteAction((2, 3)), [[1, 0], [0, 2]], [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]]),
    "bounded": (BoxAction((0.0, -1.0), (4.0, 1.0)), [[3.0, 0.5], [9.0, -2.0]], [[0.5, 0.5], [1.0, -1.0]]),
    "half_bounded": (BoxAction((-math.inf, 0.0), (1.0, math.inf)), [[-7.0, 7.0]], [[-7.0, 7.0]]),
    "constant": (BoxAction((2.0,), (2.0,)), [[2.0], [3.0]], [[0.0], [0.0]]),
    "mixed": (MixedAction((2,), (0.0,), (2.0,)), [[1.0, 1.5]], [[0.0, 1.0, 0.5]]),
}


def encoded(action: ActionSpec, chosen: list) -> Array:
    rows = np.array(chosen)
    out = np.full((len(rows), output_size(action)), 7.0, np.float32)
    action_encoder(action)(rows if rows.dtype == np.int64 else rows.astype(np.float32), out)
    return out


@pytest.mark.parametrize("name", ACTIONS)
def test_networks_see_one_hot_choices_and_scaled_numbers(name: str) -> None:
    action, chosen, expected = ACTIONS[name]
    assert encoded(action, chosen).tolist() == expected


def test_a_head_writes_its_action_into_the_carry() -> None:
    builder = ProgramBuilder((ArraySpec("seen", "float32", (3,)),))
    builder.memory("previous", (3,), "chosen")
    scores = builder.op("add", ("seen", "previous"), (3,))
    head = Head("deterministic", (scores,), settings={"action": "chosen"})
    policy = NumpyPolicy(PolicySpec(DiscreteAction(3), builder.program(), head))
    seen, noise = {"seen": np.array([[0.0, 0.5, 0.0]], np.float32)}, np.zeros((1, 0), np.float32)
    first = policy.act(seen, noise)
    assert first.carry["previous"].tolist() == [[0.0, 1.0, 0.0]]
    second = policy.act({"seen": np.array([[0.9, 0.0, 0.0]], np.float32)}, noise, first.carry)
    assert second.action.tolist() == [1]
