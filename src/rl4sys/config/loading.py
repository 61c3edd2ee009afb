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
from rl4sys.config.overrides import Overrides, parse_overrides
from rl4sys.config.search import find_config

Values = dict[str, Any]
Source = str | Path | Mapping[str, Any]
Migrate = Callable[[Mapping[str, Any]], Values]


@dataclass(frozen=True, slots=True)
class Loaded:
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
) -> Loaded:
    """The plain values of a config file or mapping, and the files that were read for them.

    What a file `extends` (one name or a list, beside it or in the search path) lies beneath it. Each file is
    migrated by itself, since each may be of another version. `${a.b}` stands for the final value of a key.
    """
    overlays = _Overlays(tuple(search_path), migrate)
    if isinstance(source, Mapping):
        layers = list(overlays.beneath(source, None, ()))
    else:
        layers = list(overlays.of_file(find_config(source, Path(), search_path), ()))
    sources = dict.fromkeys(layer.path for layer in layers if layer.path)
    said = tuple((layer.name, layer.values) for layer in layers)
    return Loaded(_resolved(layers, overrides), tuple(sources), said)


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
            parent = find_config(name, path.parent if path else Path(), self.search_path, wanted_by=path)
            yield from self.of_file(parent, opened)
        yield layer

    def _migrated(self, values: Values, path: Path | None) -> Values:
        try:
            return self.migrate(values)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}" if path else str(error)) from error


def _resolved(layers: Sequence[_Layer], overrides: Overrides) -> Values:
    try:
        config = OmegaConf.create({})
        for layer in layers:
            config = _laid_over(config, layer)
        for override in parse_overrides(overrides):
            config = override.apply(config)
        resolved = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        place = f"{error.full_key}: " if error.full_key else ""
        raise ConfigError(f"{layers[-1].name}: {place}{str(error).splitlines()[0]}") from None
    if not isinstance(resolved, dict):
        raise TypeError(f"A mapping was resolved to {type(resolved).__name__}.")
    return {str(key): value for key, value in resolved.items()}


def _laid_over(config: DictConfig, layer: _Layer) -> DictConfig:
    _refuse_mixture(config, layer.values, layer, ())
    merged = OmegaConf.merge(config, layer.values)
    if not isinstance(merged, DictConfig):
        raise TypeError(f"Two mappings were merged into {type(merged).__name__}.")
    return merged


def _refuse_mixture(below: Any, above: Any, layer: _Layer, place: tuple[str, ...]) -> None:
    """A list over a mapping, or the reverse, is a mistake; OmegaConf would not say where."""
    if OmegaConf.is_dict(below) and isinstance(above, Mapping):
        # Nodes, not values: an interpolation cannot be resolved before all layers are there.
        for key in above.keys() & below.keys():
            _refuse_mixture(below._get_node(key), above[key], layer, (*place, str(key)))
    elif (OmegaConf.is_dict(below) and isinstance(above, list)) or (
        OmegaConf.is_list(below) and isinstance(above, Mapping)
    ):
        kind = "a mapping" if OmegaConf.is_dict(below) else "a list"
        raise ConfigError(
            f"{layer.name}: {'.'.join(place)}: got {shown(above)}, but the config beneath has {kind} here; "
            f"expected {kind} or null"
        )
