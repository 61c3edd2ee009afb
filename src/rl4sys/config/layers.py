"""From files to one plain mapping: layers are merged, overridden and resolved; the origin of each value is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rl4sys.config.errors import ConfigError, Place, shown
from rl4sys.config.files import find_config, read_file
from rl4sys.config.interpolation import MISSING, UnresolvedReference, expanded, is_reference, resolved
from rl4sys.config.overrides import Overrides, parse_overrides

DEFAULT, OVERRIDE = "default", "override"
"""Origins of values that no file gives."""

Values = dict[str, Any]
Source = str | Path | Mapping[str, Any]
Migrate = Callable[[Mapping[str, Any]], Values]
NamedLayer = tuple[str, Mapping[str, Any]]
"""A layer: its name in error messages, and its values."""


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A config in plain values, and where they came from."""

    values: Values
    sources: tuple[Path, ...]
    """The files that were read, lowest overlay first."""
    layers: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """What each of them says, by its name, in the same order; references are kept as they were written."""
    overrides: tuple[Place, ...] = ()
    """The places of values that overrides gave."""


def load(
    source: Source,
    overrides: Overrides = (),
    search_path: Sequence[Path] = (),
    migrate: Migrate = dict,
) -> Values:
    """The plain values of a config file or mapping; see `read`."""
    return read(source, overrides, search_path, migrate).values


def read(
    source: Source,
    overrides: Overrides = (),
    search_path: Sequence[Path] = (),
    migrate: Migrate = dict,
) -> LoadedConfig:
    """The plain values of a config file or mapping, and the files that were read for them.

    What a file `extends` (one name or a list, beside it or in the search path) lies beneath it. Each file is
    migrated by itself, since each may be of another version. `${a.b}` stands for the final value of a key.
    """
    return Layers(source, search_path, migrate).resolved(overrides)


class Layers:
    """The layers of a config file or mapping, read once and resolved any number of times."""

    def __init__(self, source: Source, search_path: Sequence[Path] = (), migrate: Migrate = dict) -> None:
        overlays = _Overlays(tuple(search_path), migrate)
        if isinstance(source, Mapping):
            self._layers = tuple(overlays.beneath(source, None, ()))
        else:
            self._layers = tuple(overlays.of_file(find_config(source, Path(), search_path), ()))

    def resolved(self, overrides: Overrides = ()) -> LoadedConfig:
        """The values of all layers in one, with overrides."""
        return _loaded(self._layers, overrides)

    def beneath(self, values: Values) -> LoadedConfig:
        """The same with one more layer on top."""
        return _loaded((*self._layers, _Layer(values, None)), ())


class _Layer(NamedTuple):
    values: Values
    path: Path | None

    @property
    def name(self) -> str:
        return str(self.path or "config")


@dataclass(frozen=True, slots=True)
class _Overlays:
    """Follows `extends` downwards."""

    search_path: tuple[Path, ...]
    migrate: Migrate

    def of_file(self, path: Path, opened: tuple[Path, ...]) -> Iterator[_Layer]:
        if path in opened:
            circle = " → ".join(str(step) for step in (*opened[opened.index(path) :], path))
            raise ConfigError(f"A config extends itself: {circle}. Remove one of these 'extends'.")
        yield from self.beneath(read_file(path), path, (*opened, path))

    def beneath(self, raw: Mapping[str, Any], path: Path | None, opened: tuple[Path, ...]) -> Iterator[_Layer]:
        """The layers of a mapping, lowest first, the mapping itself last."""
        values = dict(raw)
        parents = values.pop("extends", None) or []
        names = parents if isinstance(parents, list | tuple) else [parents]
        layer = _Layer(self._migrated(values, path), path)
        if not all(isinstance(name, str) for name in names):
            raise ConfigError(f"{layer.name}: extends: got {shown(parents)}; expected a file name or a list of them")
        for name in names:
            reason = f"which {path} extends" if path else ""
            parent = find_config(name, path.parent if path else Path(), self.search_path, reason)
            yield from self.of_file(parent, opened)
        yield layer

    def _migrated(self, values: Values, path: Path | None) -> Values:
        try:
            return self.migrate(values)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}" if path else str(error)) from error


def _loaded(layers: Sequence[_Layer], overrides: Overrides) -> LoadedConfig:
    sources = dict.fromkeys(layer.path for layer in layers if layer.path)
    said = tuple((layer.name, layer.values) for layer in layers)
    places = tuple(override.path for override in parse_overrides(overrides))
    return LoadedConfig(_resolved(layers, overrides), tuple(sources), said, places)


def _resolved(layers: Sequence[_Layer], overrides: Overrides) -> Values:
    try:
        values = merged((layer.name, layer.values) for layer in layers)
        for override in parse_overrides(overrides):
            values = override.applied_to(values)
        plain: Values = resolved(values, values)
    except UnresolvedReference as error:
        raise ConfigError(f"{layers[-1].name}: {error}") from None
    return plain


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
