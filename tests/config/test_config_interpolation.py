"""References between values, as `${a.b}` in a file."""

from typing import Any

import pytest

from rl4sys.config import ConfigError, load

RESOLVED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a value keeps its type": ({"a": {"b": [1, 2]}, "c": "${a.b}"}, {"c": [1, 2]}),
    "lists and mappings may hold references": ({"a": 1, "b": ["${a}", {"c": "${a}"}]}, {"b": [1, {"c": 1}]}),
    "a reference to a reference": ({"a": {"b": 1}, "c": "${a}", "d": "${c.b}", "e": "${d}"}, {"d": 1, "e": 1}),
    "a reference to null": ({"a": None, "b": "${a}"}, {"b": None}),
    "a reference within a text": ({"a": 3, "b": True, "c": "x${a}-${b}"}, {"c": "x3-True"}),
    "an entry of a list": ({"a": [1, 2], "b": "${a.0}", "c": "${a[1]}"}, {"b": 1, "c": 2}),
    "a sibling": ({"a": {"b": 1, "c": "${.b}"}}, {"a": {"b": 1, "c": 1}}),
    "a key one level above": ({"a": {"b": {"c": "${..d}"}, "d": 4}}, {"a": {"b": {"c": 4}, "d": 4}}),
    "a sibling within a section that is referred to": (
        {"a": {"b": 1, "c": "${.b}"}, "d": "${a}"},
        {"d": {"b": 1, "c": 1}},
    ),
    "a reference within a reference": ({"a": {"x": 1, "y": 2}, "k": "y", "v": "${a.${k}}"}, {"v": 2}),
    "an escaped reference": ({"a": 1, "b": r"\${a}"}, {"b": "${a}"}),
    "an environment variable": ({"a": "${oc.env:RL4SYS_TEST}"}, {"a": "7"}),
    "an environment variable with a default": ({"a": "${oc.env:RL4SYS_NONE, 3}"}, {"a": "3"}),
}


@pytest.mark.parametrize("name", RESOLVED)
def test_references_are_replaced_by_what_they_refer_to(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RL4SYS_TEST", "7")
    raw, expected = RESOLVED[name]
    values = load(raw)
    assert {key: values[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${totl}", "config: a.d: the reference ${totl} finds no key 'totl'; did you mean 'total'?"),
        ("${a.c}", "config: a.d: the reference ${a.c} finds no key 'c'"),
        ("${total.c}", "config: a.d: the reference ${total.c} finds no key 'c'"),
        ("${a.d}", "config: a.d: the reference ${a.d} refers to itself"),
        ("${a}", "config: a.d: the reference ${a} refers to itself"),
        ("${a", "config: a.d: the reference in '${a' has no closing brace"),
        ("${oc.env:RL4SYS_NONE}", "config: a.d: the environment variable RL4SYS_NONE is not set"),
        ("???", "config: a.d: a value is required here"),
    ],
)
def test_a_reference_without_a_value_is_refused_with_its_place(value: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load({"a": {"d": value}, "total": 1})
    assert str(refused.value).startswith(message)


def test_two_references_to_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"config: \w: the reference \$\{\w\} refers to itself"):
        load({"a": "${b}", "b": "${a}"}, ["a.c=1"])
