"""Changes to a config from the command line or from code: `algorithm.lr=1e-3`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rl4sys.config.errors import ConfigError, shown
from rl4sys.config.files import parse_yaml

Overrides = Sequence[str] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Override:
    """One value to be put in one place, whatever stood there before."""

    path: tuple[str, ...]
    value: Any

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}={shown(self.value)}"

    def apply(self, config: DictConfig) -> DictConfig:
        """The config with this value in it. Mappings on the way are made, but take no other value's place."""
        node = config
        for depth, part in enumerate(self.path[:-1], start=1):
            inner = node.get(part)
            if inner is None:
                break
            if not isinstance(inner, DictConfig):
                place = ".".join(self.path[:depth])
                raise ConfigError(
                    f"The override {self} goes through '{place}', which is {shown(_plain(inner))} and not "
                    f"a mapping; set '{place}' as a whole."
                )
            node = inner
        # Merging would join two mappings; clearing the place first makes the new value replace the old one.
        return _merge(_merge(config, self._nested(None)), self._nested(self.value))

    def _nested(self, value: Any) -> dict[str, Any]:
        return reduce(lambda inner, part: {part: inner}, reversed(self.path), value)


def parse_overrides(overrides: Overrides) -> Iterator[Override]:
    """Overrides from `key=value` texts, or from a mapping that is nested, dotted or both."""
    if isinstance(overrides, Mapping):
        yield from _leaves(overrides, ())
        return
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"The override '{text}' has no '='; write it as key=value.")
        yield Override(_path(key.strip(), text), parse_yaml(value, f"The override '{text}'"))


def _leaves(values: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[Override]:
    for key, value in values.items():
        path = (*above, *_path(str(key), str(key)))
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, path)
        else:
            yield Override(path, value)


def _path(key: str, text: str) -> tuple[str, ...]:
    path = tuple(key.split("."))
    if not all(path):
        raise ConfigError(f"The override '{text}' has an empty name in its key '{key}'; write it as a.b.c=value.")
    return path


def _merge(config: DictConfig, values: dict[str, Any]) -> DictConfig:
    merged = OmegaConf.merge(config, values)
    if not isinstance(merged, DictConfig):
        raise TypeError(f"Two mappings were merged into {type(merged).__name__}.")
    return merged


def _plain(node: Any) -> Any:
    return OmegaConf.to_container(node) if OmegaConf.is_config(node) else node
