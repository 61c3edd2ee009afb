"""Finds config files by name, also those that come with RL4Sys, and reads them from YAML and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from rl4sys.config.errors import ConfigError, shown
from rl4sys.suggestions import nearest

_MERGE = "tag:yaml.org,2002:merge"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_SUFFIXES = (".yaml", ".yml", ".json")


def find_config(name: str | Path, beside: Path, search_path: Sequence[Path], reason: str = "") -> Path:
    """The resolved path of a config: beside the file that names it, or in the first folder that has it.

    `reason` is added to the error message if there is none: `which my.yaml extends`.
    """
    relative = Path(name).expanduser()
    candidates = list(dict.fromkeys((folder / relative).resolve() for folder in (beside, *search_path)))
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    searched = ", ".join(str(candidate) for candidate in candidates)
    near = _near(relative, list(_known(relative, candidates, search_path)))
    hint = f" Did you mean '{near}'?" if near else ""
    raise ConfigError(f"There is no config '{name}'{f', {reason}' if reason else ''}. Searched: {searched}.{hint}")


def packaged_configs() -> Path:
    """The directory of the configs that come with RL4Sys."""
    installed = Path(str(resources.files("rl4sys"))) / "configs"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "configs"


def _known(name: Path, candidates: Sequence[Path], search_path: Sequence[Path]) -> Iterator[str]:
    for candidate in candidates:
        if candidate.parent.is_dir():
            yield from (str(name.with_name(path.name)) for path in candidate.parent.iterdir() if _is_config(path))
    for folder in search_path:
        yield from (str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if _is_config(path))


def _near(name: Path, known: Sequence[str]) -> str | None:
    elsewhere = [other for other in known if Path(other).stem == name.stem]
    return elsewhere[0] if elsewhere else nearest(str(name), known)


def _is_config(path: Path) -> bool:
    return path.suffix in _SUFFIXES and path.is_file()


class _Loader(yaml.SafeLoader):
    """YAML 1.1 without its surprises: `3e-4` is a number, a date is text, and a key given twice is an error."""

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE]
        for number, key in enumerate(keys):
            if any(key.value == earlier.value for earlier in keys[:number]):
                problem = f"the key '{key.value}' is given twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        return node


# A date stays text: no setting is a date, but many a run is named after one.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def parse_yaml(text: str, source: str | Path) -> Any:
    """The plain values of a YAML text; a `ConfigError` names the source and the line."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{source}{where}: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{source}: {' '.join(str(error).split())}") from None


def parse_json(text: str, source: str | Path) -> Any:
    """The plain values of a JSON text; a `ConfigError` names the source and the line."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{source}, line {error.lineno}, column {error.colno}: {error.msg}") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def read_file(path: Path) -> dict[str, Any]:
    """The mapping that a YAML or JSON file holds; an empty file is an empty mapping."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    values = parse_json(text, path) if path.suffix.lower() == ".json" else parse_yaml(text, path)
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: got {shown(values)}; expected a mapping of keys to values")
    return values


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ConfigError(f"the key '{key}' is given twice")
        values[key] = value
    return values
