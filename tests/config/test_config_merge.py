"""Layers of a config are merged; mappings are joined and other values replaced."""

from typing import Any

import pytest

from rl4sys.config import ConfigError, Layers, load
from rl4sys.config.merge import merged

LAYERS: dict[str, tuple[dict[Any, Any], dict[Any, Any], dict[str, Any]]] = {
    "mappings are joined": (
        {"a": {"b": 1, "c": 2}, "d": 3},
        {"a": {"b": 4, "e": None}, "f": {"g": [1]}},
        {"a": {"b": 4, "c": 2, "e": None}, "d": 3, "f": {"g": [1]}},
    ),
    "a list replaces a list": ({"a": [1, {"b": 2}]}, {"a": [3]}, {"a": [3]}),
    "null replaces a mapping": ({"a": {"b": 1}}, {"a": None}, {"a": None}),
    "a mapping replaces null": ({"a": None}, {"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1}}}),
    "a mapping replaces a number": ({"a": 5}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "a number replaces a mapping": ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
    "an empty mapping changes nothing": ({"a": {"b": 1}}, {"a": {}, "c": {}}, {"a": {"b": 1}, "c": {}}),
    "a reference replaces a mapping": ({"a": {"b": 1}, "c": 2}, {"a": "${c}"}, {"a": "${c}", "c": 2}),
    "a reference is replaced": ({"a": "${c}", "c": 2}, {"a": 1}, {"a": 1, "c": 2}),
    "a missing value replaces nothing": ({"a": 1}, {"a": "???"}, {"a": 1}),
    "a missing value is replaced": ({"a": "???"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "keys are texts": ({1: 2}, {}, {"1": 2}),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_become_one(name: str) -> None:
    below, above, expected = LAYERS[name]
    assert merged([("below", below), ("above", above)]) == expected


def test_a_mapping_over_a_reference_changes_a_part_of_what_it_refers_to() -> None:
    below = {"a": {"b": 1, "c": "${.b}", "e": "${f}"}, "d": "${a}", "f": 3}
    values = Layers(below).beneath({"d": {"b": 5}, "f": 4}).values
    assert values == {"a": {"b": 1, "c": 1, "e": 4}, "d": {"b": 5, "c": 5, "e": 4}, "f": 4}


@pytest.mark.parametrize(("below", "above"), [({"a": {"b": 1}}, {"a": [1]}), ({"a": [1]}, {"a": {"b": 1}})])
def test_a_list_and_a_mapping_do_not_mix(below: dict[str, Any], above: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"^above: a: got .* but the config beneath has a (list|mapping) here"):
        merged([("below", below), ("above", above)])


def test_layers_are_not_changed_by_what_lies_over_them() -> None:
    layers = Layers({"a": {"b": [1]}, "c": "${a.b}"})
    assert layers.beneath({"a": {"b": [2]}}).values == {"a": {"b": [2]}, "c": [2]}
    assert layers.resolved().values == load({"a": {"b": [1]}, "c": [1]})
