"""Reads YAML and JSON files: `3e-4` is a number, and a key given twice is an error."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from rl4sys.config.errors import ConfigError, shown

_MERGE = "tag:yaml.org,2002:merge"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Loader(yaml.SafeLoader):
    """YAML 1.1 without its surprises about numbers and dates."""

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
