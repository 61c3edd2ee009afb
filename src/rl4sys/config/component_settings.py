"""Settings of a component whose type a higher layer changed: those that only the former type has are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rl4sys.config.errors import Place
from rl4sys.config.layers import LoadedConfig
from rl4sys.config.registry import Registry


def without_settings_of_other_types(loaded: LoadedConfig, components: Mapping[Place, Registry[Any]]) -> dict[str, Any]:
    """The values of a config in which a layer, or an override, may choose another type than the layers beneath.

    What these say about their own type does not apply then. A setting that the chosen type has, too, stays; one that is
    unknown and comes from the same layer as the type, or from one above, stays as well, and is refused.
    """
    values = loaded.values
    for place, registry in components.items():
        component = _found(values, place)
        name = component.get(registry.key) if isinstance(component, Mapping) else None
        if not isinstance(name, str) or name not in registry:
            continue
        known = {registry.key, *registry.type(name).model_fields}
        chosen = _layer_of(loaded, (*place, registry.key))
        for key in component.keys() - known:
            if _layer_of(loaded, (*place, str(key))) < chosen:
                values = _without(values, (*place, key))
    return values


def _layer_of(loaded: LoadedConfig, place: Place) -> int:
    """The number of the highest layer that gives this value; overrides are above all files."""
    if any(place[: len(override)] == override for override in loaded.overrides):
        return len(loaded.layers)
    giving = [number for number, (_, values) in enumerate(loaded.layers) if _found(values, place) is not None]
    return max(giving, default=-1)


def _found(values: Mapping[str, Any], place: Place) -> Any:
    found: Any = values
    for part in place:
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _without(values: Mapping[str, Any], place: Place) -> dict[str, Any]:
    first, *rest = place
    if not rest:
        return {key: value for key, value in values.items() if key != first}
    return {**values, first: _without(values[first], tuple(rest))}
