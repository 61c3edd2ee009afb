"""Overrides of single values, from the command line or from code: `algorithm.lr=1e-3`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rl4sys.config.errors import ConfigError, shown
from rl4sys.config.files import parse_yaml
from rl4sys.config.interpolation import MISSING, expanded, is_reference

Overrides = Sequence[str] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Override:
    """One value for one place, whatever stood there before."""

    path: tuple[str, ...]
    value: Any

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}={shown(self.value)}"

    def applied_to(self, config: dict[str, Any]) -> dict[str, Any]:
        """The config with this value in it. Mappings on the way are made, but replace no other value."""
        return self._put(config, config, 0)

    def _put(self, holder: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
        part = self.path[depth]
        if depth == len(self.path) - 1:
            return {**holder, part: self.value}
        inner = holder.get(part)
        if is_reference(inner):
            inner = expanded(inner, root, self.path[: depth + 1])
        if inner is None or inner == MISSING:
            inner = {}
        if not isinstance(inner, Mapping):
            place = ".".join(self.path[: depth + 1])
            raise ConfigError(
                f"The override {self} goes through '{place}', which is {shown(inner)} and not a mapping; set "
                f"'{place}' as a whole."
            )
        return {**holder, part: self._put(inner, root, depth + 1)}


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
