"""The base class of all configs: frozen, typed, unknown keys refused, with clear error messages."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails

from rl4sys.config.errors import ConfigError, Place, describe, problem, unknown_key
from rl4sys.config.scalars import checked

_Config = TypeVar("_Config", bound="Config")


class Config(BaseModel):
    """A record of settings. The docstring under a field is its help, documentation and JSON schema."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        validate_default=True,
        allow_inf_nan=False,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _read_scalars(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[str(info.field_name)]
        value, problems = checked(value, field.annotation)
        if problems:
            raise ValidationError.from_exception_data(cls.__name__, problems)
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _explain_problems(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            problems = _explained(error, cls)
        raise ValidationError.from_exception_data(cls.__name__, problems)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        described = handler(schema)
        # Pydantic shows a default without its registered name, and none at all that a factory makes.
        defaults = cls.model_construct().model_dump(mode="json", warnings=False)
        for name, field in handler.resolve_ref_schema(described).get("properties", {}).items():
            if name in defaults:
                field["default"] = defaults[name]
        return described


def parse(
    config_type: type[_Config],
    raw: Mapping[str, Any],
    source: str | Path | None = None,
    overrides: Sequence[Place] = (),
    keys: Callable[[], Sequence[str]] = lambda: (),
) -> _Config:
    """The typed config of a mapping, or a `ConfigError` that names every problem and where it comes from.

    `overrides` are the places of values that were given on the command line or in code, and not in the source. `keys`
    returns all keys of the config, for suggestions across sections.
    """
    try:
        return config_type.model_validate(raw)
    except ValidationError as error:
        raise ConfigError.explaining(error, source, overrides, keys()) from None


def _explained(error: ValidationError, config_type: type[Config]) -> list[InitErrorDetails]:
    """The same problems in our own words; only here the names of the fields are known."""
    allowed = {field.alias or name: field for name, field in config_type.model_fields.items()}
    ambiguous = {name for name, field in allowed.items() if _has_alternatives(field.annotation)}
    groups: dict[tuple[str | int, ...], list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        place = detail["loc"]
        if len(place) > 1 and place[0] in ambiguous:
            # Pydantic adds the name of the alternative it tried; no user wrote that.
            place = (place[0], *place[2:])
        groups.setdefault(place, []).append(detail)
    problems = []
    for place, details in groups.items():
        if details[0]["type"] == "too_short" and any(place == other[:-1] for other in groups):
            # Pydantic counts what it took; what it refused is reported at its own place.
            continue
        is_unknown = details[0]["type"] == "extra_forbidden"
        message = unknown_key(str(place[-1]), allowed) if is_unknown else describe(details)
        problems.append(problem(message, place, details[0]["input"]))
    return problems


def _has_alternatives(annotation: Any) -> bool:
    if get_origin(annotation) not in (Union, types.UnionType):
        return False
    return len([member for member in get_args(annotation) if member is not type(None)]) > 1
