"""Lays the plain mappings of several config files over one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rl4sys.config.errors import ConfigError, Place, shown
from rl4sys.config.interpolation import MISSING, expanded, is_reference

NamedLayer = tuple[str, Mapping[str, Any]]
"""A layer: its name in error messages, and its values."""


def merged(layers: Iterable[NamedLayer]) -> dict[str, Any]:
    """All layers in one, lowest first; references are kept as they were written.

    Mappings are joined, every other value replaces the one beneath. A mapping over a reference changes a part of what
    the reference stands for in the layers beneath.
    """
    values: dict[str, Any] = {}
    for name, layer in layers:
        values = _joined(values, layer, values, name, ())
    return {str(key): value for key, value in values.items()}


def _joined(
    below: Mapping[str, Any], above: Mapping[str, Any], root: Mapping[str, Any], name: str, place: Place
) -> dict[str, Any]:
    values = dict(below)
    for key, value in above.items():
        here = (*place, str(key))
        beneath = below.get(key)
        if isinstance(beneath, Mapping) and isinstance(value, list | tuple):
            raise _mixture(name, here, "a mapping", value)
        if isinstance(value, Mapping):
            if is_reference(beneath):
                beneath = expanded(beneath, root, here)
            if isinstance(beneath, list | tuple):
                raise _mixture(name, here, "a list", value)
            value = _joined(beneath if isinstance(beneath, Mapping) else {}, value, root, name, here)
        elif value == MISSING and key in below:
            continue
        values[key] = value
    return values


def _mixture(name: str, place: Place, below: str, above: Any) -> ConfigError:
    """A list over a mapping, or the reverse, is a mistake; `below` says which of the two is beneath."""
    return ConfigError(
        f"{name}: {'.'.join(place)}: got {shown(above)}, but the config beneath has {below} here; "
        f"expected {below} or null"
    )
