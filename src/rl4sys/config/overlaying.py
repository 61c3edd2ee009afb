"""Lays plain mappings over one another: what OmegaConf does too, but in a hundredth of the time."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rl4sys.config.errors import ConfigError, shown

Named = tuple[str, Mapping[str, Any]]
"""A layer: how messages call it, and what it says."""

_MISSING = "???"
_INTERPOLATION = "${"
_REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\}")


def overlaid(layers: Iterable[Named]) -> dict[str, Any] | None:
    """The layers in one, lowest first; None where it takes OmegaConf to know what is meant.

    Mappings are joined, everything else takes the place of what is beneath. Interpolations stand as they were written.
    """
    merged: dict[str, Any] = {}
    for name, values in layers:
        if not _is_plain(values):
            return None
        laid = _laid_over(merged, values, name, ())
        if laid is None:
            return None
        merged = laid
    return merged


def has_interpolation(value: Any) -> bool:
    """Whether any text in it refers to another key."""
    if isinstance(value, Mapping):
        return any(has_interpolation(item) for item in value.values())
    if isinstance(value, list):
        return any(has_interpolation(item) for item in value)
    return isinstance(value, str) and _INTERPOLATION in value


def referred(value: Any, values: Mapping[str, Any]) -> Any:
    """The value with plain references, texts that are `${a.b}` and nothing else, replaced by what they refer to.

    What is more than that is left as it is: references within a text, to references, or to what is not there.
    """
    if isinstance(value, dict):
        return {key: referred(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [referred(item, values) for item in value]
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    target: Any = values
    for part in found[1].split("."):
        if not isinstance(target, Mapping) or part not in target:
            return value
        target = target[part]
    return value if has_interpolation(target) else copy.deepcopy(target)


def mixture(name: str, place: tuple[str, ...], below: str, above: Any) -> ConfigError:
    """A list over a mapping, or the reverse, is a mistake; `below` says which of them is beneath."""
    return ConfigError(
        f"{name}: {'.'.join(place)}: got {shown(above)}, but the config beneath has {below} here; "
        f"expected {below} or null"
    )


def _laid_over(
    below: Mapping[str, Any], above: Mapping[str, Any], name: str, place: tuple[str, ...]
) -> dict[str, Any] | None:
    merged = dict(below)
    for key, value in above.items():
        beneath, here = below.get(key), (*place, key)
        if isinstance(beneath, dict) and isinstance(value, list):
            raise mixture(name, here, "a mapping", value)
        if not isinstance(value, dict):
            merged[key] = value
            continue
        if isinstance(beneath, list):
            raise mixture(name, here, "a list", value)
        if has_interpolation(beneath) and not isinstance(beneath, dict):
            # What it refers to would have to be known before all layers are there.
            return None
        joined = _laid_over(beneath if isinstance(beneath, dict) else {}, value, name, here)
        if joined is None:
            return None
        merged[key] = joined
    return merged


def _is_plain(value: Any) -> bool:
    """Whether it is what YAML and JSON have, without values that are marked as missing."""
    if isinstance(value, dict):
        return all(type(key) is str and _is_plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    return value is None or (type(value) in (bool, int, float, str) and value != _MISSING)
