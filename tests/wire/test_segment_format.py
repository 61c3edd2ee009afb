import dataclasses
from typing import Any

import pytest
from hypothesis import given

from rl4sys.experience import ArraySpec
from rl4sys.policy import ActionSpec, BoxAction, DiscreteAction, MultiDiscreteAction
from rl4sys.wire import ContractViolation, SegmentFormat
from rl4sys.wire.generated import arrays_pb2

from .strategies import LANDER, RICH, formats, recurrent_policy

FLOAT = arrays_pb2.ELEMENT_TYPE_FLOAT32


@given(formats())
def test_a_decoded_format_has_the_same_hash(form: SegmentFormat) -> None:
    again = SegmentFormat.from_message(form.to_message())
    assert again == form
    assert again.hash == form.hash


@pytest.mark.parametrize(
    ("action", "choices"),
    [(DiscreteAction(4, start=1), (4,)), (MultiDiscreteAction((2, 3)), (2, 3)), (BoxAction((-1.0,), (1.0,)), ())],
)
def test_the_format_of_a_policy_has_its_schema_and_choices(action: ActionSpec, choices: tuple[int, ...]) -> None:
    form = SegmentFormat.of(dataclasses.replace(recurrent_policy(), action=action))
    assert form.choices == choices
    assert [column.spec.name for column in form.carry] == ["core.hidden", "core.cell"]


CHANGES: dict[str, dict[str, Any]] = {
    "another name": {"observation": (ArraySpec("view", "float32", (8,)),)},
    "another type": {"observation": (ArraySpec("observation", "float64", (8,)),)},
    "another shape": {"observation": (ArraySpec("observation", "float32", (4, 2)),)},
    "another action": {"action": ArraySpec("action", "int32", ())},
    "no extras": {"extras": ()},
    "carry": {"carry": (ArraySpec("hidden", "float32", (8,)),)},
    "extras and carry swapped": {"extras": (), "carry": LANDER.schema.extras},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_the_hash_changes_when_anything_changes(change: dict[str, Any]) -> None:
    assert SegmentFormat(dataclasses.replace(LANDER.schema, **change), (4,)).hash != LANDER.hash


def test_the_hash_changes_with_the_number_of_choices_and_the_order_of_arrays() -> None:
    turned = dataclasses.replace(RICH.schema, observation=RICH.schema.observation[::-1])
    assert len({LANDER.hash, SegmentFormat(LANDER.schema, (5,)).hash}) == 2
    assert SegmentFormat(turned, RICH.choices).hash != RICH.hash


def test_the_hash_of_lunar_lander_never_changes() -> None:
    # Outboxes on the disks of clients contain it.
    assert LANDER.hash.hex() == "9936890ce7e4eada2c5b4b3a5299e1417bb378a90089876fd309d04febdadcc8"


@pytest.mark.parametrize(
    "broken",
    [
        {"name": "", "element_type": FLOAT},
        {"name": "x" * 257, "element_type": FLOAT},
        {"name": "x", "element_type": 0},
        {"name": "x", "element_type": 99},
        {"name": "x", "element_type": FLOAT, "shape": [1] * 9},
        {"name": "x", "element_type": FLOAT, "shape": [2**32 - 1, 2**32 - 1]},
        {"name": "observation", "element_type": FLOAT},
    ],
    ids=["no name", "endless name", "no type", "unknown type", "many axes", "huge", "twice"],
)
def test_a_schema_with_an_impossible_array_is_refused(broken: dict[str, Any]) -> None:
    message = LANDER.to_message()
    message.observation.append(arrays_pb2.ArraySpec(**broken))
    with pytest.raises(ContractViolation):
        SegmentFormat.from_message(message)


@pytest.mark.parametrize("choices", [(0,), (4, 4), (2**63 + 1,)], ids=["none", "two parts", "more than int64 holds"])
def test_choices_must_fit_the_action(choices: tuple[int, ...]) -> None:
    message = LANDER.to_message()
    message.choices[:] = choices
    with pytest.raises(ContractViolation, match="with choices"):
        SegmentFormat.from_message(message)


def test_a_dtype_outside_the_contract_is_refused() -> None:
    schema = dataclasses.replace(LANDER.schema, extras=(ArraySpec("when", "datetime64[s]", ()),))
    with pytest.raises(ContractViolation, match=r"datetime64.* cannot be sent"):
        SegmentFormat(schema, (4,)).to_message()
