"""References between the values of a config: `${training.total_timesteps}`, `run-${seed}`, `${.sibling}`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from rl4sys.config.errors import ConfigError, Place
from rl4sys.suggestions import did_you_mean

MISSING = "???"
"""Marks a value that another layer or an override has to give."""

_START, _ESCAPED, _PROTECTED = "${", r"\${", "\0"
_INNERMOST = re.compile(r"\$\{([^${}]*)\}")
_ENVIRONMENT = "oc.env:"


class UnresolvedReference(ConfigError):
    """A reference has no value; the message begins with the place of the reference."""


def is_reference(value: object) -> TypeGuard[str]:
    """Whether a value is a text with a reference in it."""
    return isinstance(value, str) and _START in value


def resolved(value: Any, root: Mapping[str, Any], place: Place = ()) -> Any:
    """The value, which stands at a place below the root, with every reference replaced by what it refers to.

    `${a.b}` and `${a[0]}` start at the root, `${.b}` at the mapping that holds the value and `${..b}` one above.
    `${oc.env:NAME}` and `${oc.env:NAME,default}` take an environment variable. `\\${` stands for `${`.
    """
    return _Resolver(root).value(value, place, ())


def expanded(value: Any, root: Mapping[str, Any], place: Place) -> Any:
    """What a text that is one reference stands for, with the references inside it kept; other texts are resolved."""
    resolver, opened = _Resolver(root), tuple[Place, ...]()
    while is_reference(value):
        found = _INNERMOST.fullmatch(value)
        if found is None or found[1].startswith(_ENVIRONMENT):
            return resolver.value(value, place, opened)
        place, value, opened = resolver.node(found[1].strip(), place, opened)
    return value


class _Resolver:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def value(self, value: Any, place: Place, opened: tuple[Place, ...]) -> Any:
        """`opened` has the places that are being resolved: a reference to one of them would never end."""
        if isinstance(value, Mapping):
            return {key: self.value(item, (*place, str(key)), opened) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item, (*place, str(number)), opened) for number, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        if value == MISSING:
            raise UnresolvedReference(f"{'.'.join(place)}: a value is required here ('{MISSING}' stands for one)")
        return self._text(value, place, opened) if _START in value else value

    def _text(self, text: str, place: Place, opened: tuple[Place, ...]) -> Any:
        text = text.replace(_ESCAPED, _PROTECTED)
        while found := _INNERMOST.search(text):
            value = self._target(found[1].strip(), place, opened)
            if found[0] == text:
                return value
            text = f"{text[: found.start()]}{value}{text[found.end() :]}"
        if _START in text:
            raise UnresolvedReference(f"{'.'.join(place)}: the reference in '{text}' has no closing brace")
        return text.replace(_PROTECTED, _START)

    def _target(self, reference: str, place: Place, opened: tuple[Place, ...]) -> Any:
        if reference.startswith(_ENVIRONMENT):
            return _variable(reference.removeprefix(_ENVIRONMENT), place)
        target, value, opened = self.node(reference, place, opened)
        return self.value(value, target, opened)

    def node(self, reference: str, place: Place, opened: tuple[Place, ...]) -> tuple[Place, Any, tuple[Place, ...]]:
        """The place that a reference refers to, the unresolved value there, and the places opened so far."""
        path = reference.lstrip(".")
        above = place[: -(len(reference) - len(path))] if path != reference else ()
        target = (*above, *re.findall(r"[^.\[\]]+", path))
        if target in opened or not target:
            raise UnresolvedReference(f"{'.'.join(place)}: the reference ${{{reference}}} refers to itself")
        opened = (*opened, target)
        value: Any = self._root
        for depth, part in enumerate(target):
            if is_reference(value):
                value = self.value(value, target[:depth], opened)
            value = _entry(value, part, f"{'.'.join(place)}: the reference ${{{reference}}}")
        return target, value, opened


def _entry(holder: Any, part: str, who: str) -> Any:
    if isinstance(holder, Mapping):
        if part in holder:
            return holder[part]
        raise UnresolvedReference(f"{who} finds no key '{part}'{did_you_mean(part, map(str, holder))}")
    if isinstance(holder, list | tuple) and part.isdecimal() and int(part) < len(holder):
        return holder[int(part)]
    raise UnresolvedReference(f"{who} finds no key '{part}'")


def _variable(text: str, place: Place) -> str:
    name, comma, default = text.partition(",")
    value = os.environ.get(name.strip(), default.strip() if comma else None)
    if value is None:
        raise UnresolvedReference(f"{'.'.join(place)}: the environment variable {name.strip()} is not set")
    return value
