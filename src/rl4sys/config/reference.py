"""A config described: as a JSON schema for editors, and as a reference page in Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from rl4sys.config.model import Config

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EXTENDS = {
    "description": "The config or configs that this one lies over.",
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
}


class _Generator(GenerateJsonSchema):
    """Leaves out titles that only repeat a field's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema(config_type: type[Config]) -> dict[str, Any]:
    """The schema of files of this config type: names, types, defaults, and the docstrings as descriptions."""
    schema = config_type.model_json_schema(schema_generator=_Generator)
    return {
        "$schema": _DIALECT,
        **schema,
        "properties": {"extends": _EXTENDS, **schema.get("properties", {})},
    }


Schema = Mapping[str, Any]

_SCALARS = {"number": "float", "integer": "int", "string": "str", "boolean": "bool", "null": "null"}
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def reference(config_type: type[Config], title: str = "Configuration") -> str:
    """A page about a config type and about all registered entries that its fields may name."""
    return _Reference(json_schema(config_type)).page(title)


class _Reference:
    """Walks a schema; the registries met on the way get chapters of their own."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.choices: dict[str, Schema] = {}

    def page(self, title: str) -> str:
        sections = {key: inner for key, field in self.schema["properties"].items() if (inner := self._inner(field))}
        blocks = [
            f"# {title}",
            self.schema.get("description", ""),
            *self._table(self.schema, leave_out=sections),
        ]
        for key, (section, mark) in sections.items():
            field = self.schema["properties"][key]
            blocks += [
                f"## `{key}{mark}`",
                field.get("description") or section.get("description", ""),
                *self._table(section),
            ]
        described: list[str] = []
        while pending := [kind for kind in self.choices if kind not in described]:
            blocks += self._chapter(pending[0])
            described.append(pending[0])
        return "\n\n".join(block for block in blocks if block) + "\n"

    def _chapter(self, kind: str) -> Iterator[str]:
        registry = self.choices[kind]
        key = registry["discriminator"]["propertyName"]
        yield f"## Choices: {kind}"
        for entry in registry.get("oneOf", ()):
            yield f"### `{key}: {entry['properties'][key]['const']}`"
            yield entry.get("description", "")
            yield from self._table(entry, leave_out=[key]) or ["It has no settings."]

    def _table(self, owner: Schema, leave_out: Collection[str] = ()) -> list[str]:
        rows = list(self._rows(owner, "", leave_out, ()))
        return ["\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *rows])] if rows else []

    def _rows(self, owner: Schema, prefix: str, leave_out: Collection[str], above: tuple[str, ...]) -> Iterator[str]:
        for key, field in owner["properties"].items():
            if key in leave_out:
                continue
            meaning = " ".join(field.get("description", "").split()).replace("|", "\\|")
            default = "required" if key in owner.get("required", ()) else self._default(field)
            yield f"| `{prefix}{key}` | {self._cell(self._type(field))} | {default} | {meaning} |"
            inner = self._inner(field)
            if inner and inner[0]["title"] not in above:
                yield from self._rows(inner[0], f"{prefix}{key}{inner[1]}.", (), (*above, inner[0]["title"]))

    def _target(self, field: Schema) -> Schema:
        target: Schema = self.schema["$defs"][field["$ref"].rpartition("/")[2]] if "$ref" in field else field
        return target

    def _inner(self, field: Schema) -> tuple[Schema, str] | None:
        """The config inside a field, and where in it: nowhere else, in a list (`[]`), in a mapping (`.*`)."""
        field = self._target(field)
        if "properties" in field:
            return field, ""
        for member in field.get("anyOf", ()):
            if found := self._inner(member):
                return found
        for keyword, mark in (("items", "[]"), ("additionalProperties", ".*")):
            if isinstance(field.get(keyword), Mapping) and (found := self._inner(field[keyword])):
                return found[0], mark + found[1]
        return None

    def _type(self, field: Schema) -> str:
        field = self._target(field)
        if "x-registry" in field:
            self.choices.setdefault(field["x-registry"], field)
            return str(field["x-registry"])
        if "const" in field or "enum" in field:
            return " | ".join(json.dumps(choice) for choice in field.get("enum", [field.get("const")]))
        if members := field.get("anyOf") or field.get("oneOf"):
            return " or ".join(sorted((self._type(member) for member in members), key="null".__eq__))
        if field.get("type") == "array":
            items = field.get("prefixItems") or [field.get("items", {})]
            return f"list[{', '.join(self._type(item) for item in items)}]"
        if field.get("type") == "object":
            values = field.get("additionalProperties")
            return f"dict[str, {self._type(values)}]" if isinstance(values, Mapping) else "mapping"
        bounds = [f"{sign} {field[bound]}" for bound, sign in _BOUNDS.items() if bound in field]
        name = "path" if field.get("format") == "path" else _SCALARS.get(field.get("type", ""), "any")
        return ", ".join([name, *bounds])

    def _cell(self, text: str) -> str:
        """A type as code, its alternatives apart: a `|` within code would end the cell of a table."""
        if "[" in text:
            return f"`{text.replace(' | ', ' or ')}`"
        parts = re.split(r"( \| | or )", text)
        names = [self._name(part) for part in parts[::2]]
        signs = [" \\| " if sign == " | " else sign for sign in parts[1::2]]
        return "".join(name + sign for name, sign in zip_longest(names, signs, fillvalue=""))

    def _name(self, name: str) -> str:
        return f"[{name}](#choices-{name.replace(' ', '-')})" if name in self.choices else f"`{name}`"

    def _default(self, field: Schema) -> str:
        default, inner = field.get("default"), self._inner(field)
        if "default" not in field or (isinstance(default, Mapping) and inner and not inner[1]):
            return ""
        if "x-registry" in field and isinstance(default, Mapping):
            key = field["discriminator"]["propertyName"]
            return f"`{key}: {default[key]}`"
        return f"`{json.dumps(default, ensure_ascii=False)}`".replace("|", "\\|")
