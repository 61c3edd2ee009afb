"""The origin of each value of a config: a file, an override, or the default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rl4sys.config.layers import LoadedConfig
from rl4sys.config.overrides import Overrides, parse_overrides

DEFAULT = "default"
OVERRIDE = "override"

Place = tuple[str, ...]


def flat(values: Mapping[str, Any], above: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every value that is no mapping, with its place; an empty mapping is a value."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, (*above, str(key)))
        else:
            yield (*above, str(key)), value


def origins(loaded: LoadedConfig, overrides: Overrides, final: Mapping[str, Any]) -> dict[str, str]:
    """The origin of every value of the finished config, by its dotted key."""
    given: dict[Place, str] = {}
    for name, values in loaded.layers:
        for place, _ in flat(values):
            _give(given, place, name)
    for override in parse_overrides(overrides):
        _give(given, override.path, OVERRIDE)
    return {".".join(place): _origin(given, place) for place, _ in flat(final)}


def _give(given: dict[Place, str], place: Place, name: str) -> None:
    """A value takes the place of everything that stood above or below it."""
    for other in [other for other in given if other[: len(place)] == place or place[: len(other)] == other]:
        del given[other]
    given[place] = name


def _origin(given: Mapping[Place, str], place: Place) -> str:
    for length in range(len(place), 0, -1):
        if place[:length] in given:
            return given[place[:length]]
    return DEFAULT
