"""The JSON schema of a config, for editors that complete and check it."""

from __future__ import annotations

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
