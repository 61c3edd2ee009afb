from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rl4sys.environments import (
    ObservationMismatch,
    UnsupportedSpace,
    action_converter,
    action_spec,
)
from rl4sys.environments.spaces import ObservationConverter, action_batch_converter
from rl4sys.policy import BoxAction, DiscreteAction, MixedAction, MultiDiscreteAction


def converted(space: Any, observation: Any) -> dict[str, Any]:
    return {name: array.tolist() for name, array in ObservationConverter(space).single(observation, {}).items()}


@pytest.mark.parametrize(
    ("dtype", "stored"),
    [("float64", "float32"), ("float32", "float32"), ("uint8", "uint8"), ("int16", "float32")],
)
def test_a_box_keeps_its_shape_and_becomes_float32_unless_it_is_bytes(dtype: str, stored: str) -> None:
    (spec,) = ObservationConverter(spaces.Box(0, 5, (2, 3), np.dtype(dtype).type)).specs
    assert (spec.name, spec.dtype, spec.shape) == ("observation", stored, (2, 3))


def test_a_box_without_axes_is_a_number_per_lane() -> None:
    assert converted(spaces.Box(0, 1, ()), np.float32(0.5)) == {"observation": 0.5}


def test_a_discrete_observation_becomes_one_hot_from_its_start() -> None:
    assert converted(spaces.Discrete(3, start=5), 6) == {"observation": [0.0, 1.0, 0.0]}


def test_multi_discrete_observations_become_one_hot_vectors_side_by_side() -> None:
    assert converted(spaces.MultiDiscrete([2, 3]), np.array([1, 2])) == {"observation": [0, 1, 0, 0, 1]}


def test_a_multi_binary_observation_becomes_floats() -> None:
    assert converted(spaces.MultiBinary(3), np.array([1, 0, 1], np.int8)) == {"observation": [1.0, 0.0, 1.0]}


def test_nested_dictionaries_and_tuples_become_dotted_names() -> None:
    box = spaces.Box(0, 9, (1,))
    space = spaces.Dict({"a": spaces.Dict({"b": box, "c": spaces.Discrete(2)}), "t": spaces.Tuple((box, box))})
    observation = {"a": {"b": np.array([1.0]), "c": 1}, "t": (np.array([2.0]), np.array([3.0]))}
    assert converted(space, observation) == {"a.b": [1.0], "a.c": [0.0, 1.0], "t.0": [2.0], "t.1": [3.0]}


def test_an_action_mask_within_the_observation_is_boolean() -> None:
    space = spaces.Dict({"action_mask": spaces.Box(0, 1, (3,), np.int8), "x": spaces.Box(0, 1, (1,))})
    mask = ObservationConverter(space).single({"action_mask": np.array([1, 0, 1], np.int8), "x": [0.0]}, {})
    assert mask["action_mask"].dtype == bool
    assert mask["action_mask"].tolist() == [True, False, True]


def test_an_observation_without_fixed_shape_is_refused_with_a_way_out() -> None:
    with pytest.raises(UnsupportedSpace, match="FlattenObservation"):
        ObservationConverter(spaces.Dict({"words": spaces.Text(5)}))


def test_two_parts_with_one_name_are_refused() -> None:
    box = spaces.Box(0, 1, (1,))
    with pytest.raises(UnsupportedSpace, match="same name"):
        ObservationConverter(spaces.Dict({"a.b": box, "a": spaces.Dict({"b": box})}))


def test_an_observation_that_breaks_its_promise_is_reported() -> None:
    with pytest.raises(ObservationMismatch, match=r"float32\[4\]"):
        converted(spaces.Box(0, 1, (4,)), np.zeros(1))


def test_the_batch_way_equals_the_single_way() -> None:
    space = spaces.Dict({"d": spaces.Discrete(3), "m": spaces.MultiDiscrete([2, 2]), "b": spaces.Box(0, 1, (2,))})
    converter = ObservationConverter(space)
    rows = [space.sample() for _ in range(4)]
    batch = {key: np.stack([row[key] for row in rows]) for key in space}
    one, other = converter.empty(4), converter.empty(4)
    converter.fill(one, rows, [{}] * 4)
    converter.fill_batch(other, batch, np.ones(4))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_discrete_actions_are_counted_from_the_start_of_their_space() -> None:
    space = spaces.Discrete(3, start=-1)
    assert action_spec(space) == DiscreteAction(3, -1)
    assert action_converter(space)(np.array([0, 2])) == [-1, 1]
    assert all(type(action) is int for action in action_converter(space)(np.array([0, 2])))


def test_multi_discrete_actions_come_as_arrays_with_their_start() -> None:
    space = spaces.MultiDiscrete([2, 3], start=[0, 10])
    assert action_spec(space) == MultiDiscreteAction((2, 3))
    (action,) = action_converter(space)(np.array([[1, 2]]))
    assert action.tolist() == [1, 12]
    assert action in space


def test_multi_binary_actions_are_choices_between_two() -> None:
    space = spaces.MultiBinary((2, 2))
    assert action_spec(space) == MultiDiscreteAction((2, 2, 2, 2))
    (action,) = action_converter(space)(np.array([[1, 0, 0, 1]]))
    assert action.tolist() == [[1, 0], [0, 1]]
    assert action in space


def test_box_actions_are_reshaped_and_clipped_to_asymmetric_bounds() -> None:
    low, high = np.array([[-1.0], [0.1]]), np.array([[2.0], [0.3]])
    space = spaces.Box(low, high, dtype=np.float64)
    assert action_spec(space) == BoxAction((-1.0, 0.1), (2.0, 0.3))
    chosen = np.array([[-5.0, 5.0], [1.5, 0.0]], np.float32)
    actions = action_converter(space)(chosen)
    assert [action.tolist() for action in actions] == [[[-1.0], [0.3]], [[1.5], [0.1]]]
    assert all(action in space for action in actions)
    assert chosen[0].tolist() == [-5.0, 5.0]


def test_actions_of_other_spaces_are_refused_with_what_is_expected() -> None:
    with pytest.raises(UnsupportedSpace, match="expected Discrete"):
        action_spec(spaces.Text(3))


SERVICE = spaces.Dict(
    {
        "rate": spaces.Box(0.0, 2.0, (1, 2), np.float32),
        "route": spaces.Tuple((spaces.Discrete(3, start=1), spaces.MultiBinary(2))),
    }
)


def test_a_structured_action_is_flat_for_the_policy_with_its_choices_first() -> None:
    assert action_spec(SERVICE) == MixedAction((3, 2, 2), (0.0, 0.0), (2.0, 2.0))
    assert action_spec(spaces.Tuple((spaces.Discrete(2), spaces.Discrete(4)))) == MultiDiscreteAction((2, 4))
    assert action_spec(spaces.Dict({"a": spaces.Box(0, 1, (2,))})) == BoxAction((0.0, 0.0), (1.0, 1.0))


def test_a_flat_decision_becomes_the_structured_action_of_each_environment() -> None:
    flat = np.array([[2, 0, 1, 0.5, 9.0], [0, 1, 1, -1.0, 1.0]], np.float32)
    first, second = action_converter(SERVICE)(flat)
    assert first["route"][0] == 3
    assert first["route"][1].tolist() == [0, 1]
    assert first["rate"].tolist() == [[0.5, 2.0]]
    assert second["rate"].tolist() == [[0.0, 1.0]]
    assert all(SERVICE.contains(action) for action in (first, second))


def test_a_batch_of_flat_decisions_becomes_a_structure_of_batches() -> None:
    flat = np.array([[2, 0, 1, 0.5, 9.0], [0, 1, 1, -1.0, 1.0]], np.float32)
    batch = action_batch_converter(SERVICE)(flat)
    assert batch["route"][0].tolist() == [3, 1]
    assert batch["rate"].shape == (2, 1, 2)


def test_an_empty_structure_of_actions_is_refused() -> None:
    with pytest.raises(UnsupportedSpace, match="Dict or Tuple of these"):
        action_spec(spaces.Dict({}))
