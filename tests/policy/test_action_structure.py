"""Structured actions: flat for a policy, nested for a program."""

import numpy as np
import pytest

from rl4sys.policy import ActionStructure, BoxAction, DiscreteAction, MixedAction, MultiDiscreteAction

STRUCTURE = ActionStructure(
    {
        "rate": BoxAction((0.0,), (1.0,)),
        "route": (DiscreteAction(3), MultiDiscreteAction((2, 2))),
        "shift": BoxAction((-1.0, -1.0), (1.0, 1.0)),
    }
)


def test_choices_come_first_and_numbers_after_them() -> None:
    assert STRUCTURE.spec == MixedAction((3, 2, 2), (0.0, -1.0, -1.0), (1.0, 1.0, 1.0))


def test_parts_of_one_kind_need_no_mixed_action() -> None:
    assert ActionStructure((DiscreteAction(3), DiscreteAction(4))).spec == MultiDiscreteAction((3, 4))
    assert ActionStructure({"a": BoxAction((0.0,), (1.0,))}).spec == BoxAction((0.0,), (1.0,))


def test_a_flat_action_splits_into_its_parts_and_joins_again() -> None:
    flat = np.array([[2, 1, 0, 0.5, -0.25, 0.75]], np.float32)
    parts = [part[0] for part in STRUCTURE.split(flat)]
    nested = STRUCTURE.nest(parts)
    assert nested["route"][0] == 2
    assert nested["route"][1].tolist() == [1, 0]
    assert nested["shift"].tolist() == [-0.25, 0.75]
    np.testing.assert_array_equal(STRUCTURE.join(STRUCTURE.flatten(nested)), flat[0])


def test_an_action_with_other_parts_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"has the parts \['rate'\]; expected"):
        STRUCTURE.flatten({"rate": [0.5]})


def test_a_structure_without_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="expected at least one part"):
        ActionStructure({})
