"""Plain layers are laid over one another as OmegaConf would; where only it knows, they are left to it."""

from typing import Any

import pytest
from omegaconf import OmegaConf

from rl4sys.config import ConfigError, Layers, load
from rl4sys.config.overlaying import overlaid

LAYERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "joined": ({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 4, "e": None}, "f": {"g": [1]}}),
    "a list replaces a list": ({"a": [1, {"b": 2}]}, {"a": [3]}),
    "null replaces a mapping": ({"a": {"b": 1}}, {"a": None}),
    "a mapping replaces null": ({"a": None}, {"a": {"b": {"c": 1}}}),
    "a mapping replaces a number": ({"a": 5}, {"a": {"b": 1}}),
    "a number replaces a mapping": ({"a": {"b": 1}}, {"a": 5}),
    "an empty mapping changes nothing": ({"a": {"b": 1}}, {"a": {}, "c": {}}),
    "an interpolation replaces a mapping": ({"a": {"b": 1}, "c": 2}, {"a": "${c}"}),
    "an interpolation is replaced": ({"a": "${c}", "c": 2}, {"a": 1}),
}


@pytest.mark.parametrize("name", LAYERS)
def test_plain_layers_become_what_omegaconf_makes_of_them(name: str) -> None:
    below, above = LAYERS[name]
    expected = OmegaConf.to_container(OmegaConf.merge(OmegaConf.create(below), above), resolve=False)
    assert overlaid([("below", below), ("above", above)]) == expected


@pytest.mark.parametrize(
    ("below", "above"),
    [
        ({"a": {"b": 1}, "c": "${a}"}, {"c": {"d": 2}}),
        ({"a": 1}, {"a": "???"}),
        ({"a": 1}, {"a": (1, 2)}),
        ({1: 2}, {}),
    ],
)
def test_what_only_omegaconf_knows_is_left_to_it(below: dict[str, Any], above: dict[str, Any]) -> None:
    assert overlaid([("below", below), ("above", above)]) is None
    expected = OmegaConf.to_container(OmegaConf.merge(OmegaConf.create(below), above), resolve=True)
    assert Layers(below).beneath(above).values == {str(key): value for key, value in expected.items()}


@pytest.mark.parametrize(
    "value",
    [
        {"a": {"b": [1, 2]}, "c": "${a.b}", "d": ["${a}", {"e": "${c}"}]},
        {"a": None, "b": "${a}", "c": "x${a}"},
        {"a": [1, 2], "b": "${a.0}", "c": "${a[1]}"},
        {"a": {"b": 1, "c": "${.b}"}, "d": r"\${a}"},
    ],
)
def test_references_become_what_omegaconf_makes_of_them(value: dict[str, Any]) -> None:
    assert load(value) == OmegaConf.to_container(OmegaConf.create(value), resolve=True)


@pytest.mark.parametrize("reference", ["${b}", "${a.c}", "${a"])
def test_a_reference_to_nothing_is_told(reference: str) -> None:
    with pytest.raises(ConfigError, match=r"config: .*"):
        load({"a": {"d": reference}})


@pytest.mark.parametrize(("below", "above"), [({"a": {"b": 1}}, {"a": [1]}), ({"a": [1]}, {"a": {"b": 1}})])
def test_a_list_and_a_mapping_do_not_mix(below: dict[str, Any], above: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"^above: a: got .* but the config beneath has a (list|mapping) here"):
        overlaid([("below", below), ("above", above)])


def test_layers_are_not_changed_by_what_lies_over_them() -> None:
    layers = Layers({"a": {"b": [1]}, "c": "${a.b}"})
    assert layers.beneath({"a": {"b": [2]}}).values == {"a": {"b": [2]}, "c": [2]}
    assert layers.resolved().values == load({"a": {"b": [1]}, "c": [1]})
