"""From files to one plain mapping: overlays, then overrides, then interpolation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rl4sys.config.errors import ConfigError, shown
from rl4sys.config.files import read_file
from rl4sys.config.overlaying import has_interpolation, mixture, overlaid, referred
from rl4sys.config.overrides import Overrides, parse_overrides
from rl4sys.config.search import find_config

Values = dict[str, Any]
Source = str | Path | Mapping[str, Any]
Migrate = Callable[[Mapping[str, Any]], Values]


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A config in plain values, and where they came from."""

    values: Values
    sources: tuple[Path, ...]
    """The files that were read, lowest overlay first."""
    layers: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """What each of them says, by its name, in the same order; interpolations stand as they were written."""


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
    """The layers of a config file or mapping, read once and resolved as often as one likes."""

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
    return LoadedConfig(_resolved(layers, overrides), tuple(sources), said)


def _resolved(layers: Sequence[_Layer], overrides: Overrides) -> Values:
    values = overlaid((layer.name, layer.values) for layer in layers)
    if values is not None and not overrides:
        plain: Values = referred(values, values)
        if not has_interpolation(plain):
            return plain
    try:
        config = _merged(layers) if values is None else OmegaConf.create(values)
        for override in parse_overrides(overrides):
            config = override.apply(config)
        resolved = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        place = f"{error.full_key}: " if error.full_key else ""
        raise ConfigError(f"{layers[-1].name}: {place}{str(error).splitlines()[0]}") from None
    if not isinstance(resolved, dict):
        raise TypeError(f"A mapping was resolved to {type(resolved).__name__}.")
    return {str(key): value for key, value in resolved.items()}


def _merged(layers: Sequence[_Layer]) -> DictConfig:
    config = OmegaConf.create({})
    for layer in layers:
        _refuse_mixture(config, layer.values, layer, ())
        merged = OmegaConf.merge(config, layer.values)
        if not isinstance(merged, DictConfig):
            raise TypeError(f"Two mappings were merged into {type(merged).__name__}.")
        config = merged
    return config


def _refuse_mixture(below: Any, above: Any, layer: _Layer, place: tuple[str, ...]) -> None:
    """A list over a mapping, or the reverse, is a mistake; OmegaConf would not say where."""
    if OmegaConf.is_dict(below) and isinstance(above, Mapping):
        # Nodes, not values: an interpolation cannot be resolved before all layers are there.
        for key in above.keys() & below.keys():
            _refuse_mixture(below._get_node(key), above[key], layer, (*place, str(key)))
    elif (OmegaConf.is_dict(below) and isinstance(above, list)) or (
        OmegaConf.is_list(below) and isinstance(above, Mapping)
    ):
        raise mixture(layer.name, place, "a mapping" if OmegaConf.is_dict(below) else "a list", above)
