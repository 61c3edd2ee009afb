import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl4sys.experience import ArraySpec
from rl4sys.policy import (
    MASK,
    ActionSpec,
    BoxAction,
    DiscreteAction,
    Head,
    MultiDiscreteAction,
    PolicySpec,
    Program,
    ProgramBuilder,
    action_array,
)

from .specs import direct, mlp, recurrent

bounds = st.floats(width=32, allow_nan=False)
actions = st.one_of(
    st.builds(DiscreteAction, st.integers(1, 100), st.integers(-5, 5)),
    st.builds(MultiDiscreteAction, st.lists(st.integers(1, 9), min_size=1).map(tuple)),
    st.lists(st.tuples(bounds, bounds), min_size=1).map(lambda b: BoxAction(*map(tuple, zip(*b, strict=True)))),
)
settings = st.dictionaries(st.text(), st.one_of(st.booleans(), st.integers(), bounds, st.text(), st.lists(bounds)))
heads = st.builds(
    Head,
    st.sampled_from(["categorical", "gaussian"]),
    st.lists(st.text()).map(tuple),
    st.lists(st.text()).map(tuple),
    st.none() | st.text(),
    settings,
)


def everything() -> PolicySpec:
    """A spec with every feature of the builder."""
    inputs = ArraySpec("image", "uint8", (2, 2)), ArraySpec("queue", "float32", (3,)), ArraySpec("count", "int64", ())
    builder = ProgramBuilder((*inputs, ArraySpec(MASK, "bool", (4,))))
    register = builder.layer_norm(builder.features(standardize=True), "norm")
    register = builder.lstm(builder.gru(register, 3, "gru"), 4, "lstm")
    logits = builder.activation(builder.linear(register, 4, "out"), "leaky_relu")
    return PolicySpec(DiscreteAction(4, start=1), builder.program(), Head("categorical", (logits,), mask=MASK))


@pytest.mark.parametrize("spec", [everything(), mlp(), recurrent()])
def test_a_spec_round_trips_through_json(spec: PolicySpec) -> None:
    again = PolicySpec.from_json(spec.to_json())
    assert again == spec
    assert again.to_json() == spec.to_json()


@given(action=actions, head=heads)
def test_any_action_and_head_round_trip_through_json(action: ActionSpec, head: Head) -> None:
    spec = PolicySpec(action, Program((), (), ()), head)
    text = spec.to_json()
    assert PolicySpec.from_json(text).action == action
    assert PolicySpec.from_json(text).to_json() == text


def test_equal_specs_have_equal_text() -> None:
    one = direct(BoxAction((-1, -2), (1, 0)), 2, Head("deterministic", ("scores",), settings={"a": 1, "b": 2.0}))
    other = direct(
        BoxAction((-1.0, -2.0), (1.0, -0.0)), 2, Head("deterministic", ("scores",), settings={"b": 2, "a": 1.0})
    )
    assert one == other
    assert one.to_json() == other.to_json()


def test_infinite_bounds_are_strings_because_json_has_no_such_numbers() -> None:
    spec = direct(BoxAction((-math.inf, 0.5), (math.inf, 2.0)), 2, Head("deterministic", ("scores",)))
    action = json.loads(spec.to_json(), parse_constant=pytest.fail)["action"]
    assert action == {"kind": "box", "low": ["-inf", 0.5], "high": ["inf", 2]}
    assert PolicySpec.from_json(spec.to_json()).action == spec.action


def test_an_unknown_kind_of_action_is_refused() -> None:
    raw = json.loads(mlp().to_json())
    raw["action"] = {"kind": "graph"}
    with pytest.raises(ValueError, match="expected kind discrete, multi_discrete, box or mixed"):
        PolicySpec.from_json(json.dumps(raw))


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (DiscreteAction(3), "action: int64[]"),
        (MultiDiscreteAction((2, 5)), "action: int64[2]"),
        (BoxAction((0.0,) * 3, (1.0,) * 3), "action: float32[3]"),
    ],
)
def test_actions_are_stored_as_choices_or_vectors(action: ActionSpec, expected: str) -> None:
    assert str(action_array(action)) == expected


def test_the_segment_schema_follows_from_the_policy() -> None:
    schema = recurrent().segment_schema()
    assert [str(array) for array in schema.observation] == ["state: float32[3]"]
    assert [str(array) for array in schema.extras] == ["log_prob: float32[]"]
    assert [array.name for array in schema.carry] == ["first.hidden", "second.hidden", "second.cell"]
