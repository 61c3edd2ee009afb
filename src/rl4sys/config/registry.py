"""Registries of config types: a file chooses a component by its name."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, SerializationInfo, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from rl4sys.config.errors import ConfigError, problem, shown, unknown_key
from rl4sys.config.model import Config
from rl4sys.suggestions import did_you_mean, nearest

C = TypeVar("C", bound=Config)
Entry = TypeVar("Entry", bound=Config)


class Registry(Generic[C]):
    """Maps names (in any case) to the config types of one kind of component.

    A field chosen by name is declared as `algorithm: Annotated[AlgorithmConfig, ALGORITHMS]`. Its value is a
    mapping with the name under `key`, and is written back in the same way. A `default` lets the name be
    left out; where the other settings tell more, `choose` finds it from these.
    """

    def __init__(
        self,
        kind: str,
        base: type[C],
        *,
        key: str = "name",
        default: str | None = None,
        choose: Callable[[Mapping[str, Any]], str] | None = None,
    ) -> None:
        self.kind = kind
        self.base = base
        self.key = key
        self.default = default
        self._choose = choose
        self._types: dict[str, type[C]] = {}
        self._is_describing = False

    def register(self, name: str) -> Callable[[builtins.type[Entry]], builtins.type[Entry]]:
        """Give the decorated config type a name. A reloaded module replaces its own types, and no others."""

        def remember(entry: builtins.type[Entry]) -> builtins.type[Entry]:
            self._types[name.casefold()] = self._accepted(name, entry)
            return entry

        return remember

    def names(self) -> tuple[str, ...]:
        """All names, in alphabetical order."""
        return tuple(sorted(self._types))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: str) -> bool:
        return name.casefold() in self._types

    def __len__(self) -> int:
        return len(self._types)

    def type(self, name: str) -> builtins.type[C]:
        """The config type of a name."""
        if name not in self:
            raise ConfigError(self._unknown(name))
        return self._types[name.casefold()]

    def name_of(self, config: Config) -> str:
        """The name under which the type of a config is registered."""
        for name, entry in self._types.items():
            if entry is type(config):
                return name
        raise ConfigError(f"{_qualified(type(config))} is no registered {self.kind}; decorate it with `register`.")

    def parse(self, raw: Mapping[str, Any], source: str | Path | None = None) -> C:
        """The typed config that a mapping describes, the name being one of its keys."""
        try:
            return self._validated(raw)
        except ValidationError as error:
            raise ConfigError.explaining(error, source) from None

    def dump(self, config: C) -> dict[str, Any]:
        """What `parse` takes to give an equal config: plain values for YAML and JSON, the name first."""
        return {self.key: self.name_of(config), **config.model_dump(mode="json")}

    def load_entry_points(self, group: str) -> None:
        """Let installed packages add entries.

        An entry point is a module whose decorators register, or a config type to register under its name.
        """
        for entry_point in (point for point in installed() if point.group == group):
            try:
                loaded = entry_point.load()
                if not isinstance(loaded, ModuleType):
                    self.register(entry_point.name)(loaded)
            except Exception as error:  # whatever a stranger's package raises
                package = entry_point.dist.name if entry_point.dist else "an unknown package"
                raise ConfigError(
                    f"The {self.kind} plug-in '{entry_point.name}' ({entry_point.value}, from {package}) "
                    f"cannot be loaded: {type(error).__name__}: {error}. Repair or uninstall {package}."
                ) from error

    def _accepted(self, name: str, entry: builtins.type[Config]) -> builtins.type[C]:
        if not issubclass(entry, self.base):
            raise TypeError(f"{_qualified(entry)} must inherit from {_qualified(self.base)} to become {self.kind}.")
        if self.key in entry.model_fields:
            raise TypeError(f"{_qualified(entry)} has a field '{self.key}', the key of the {self.kind}'s name.")
        holder = self._types.get(name.casefold())
        if holder is not None and _qualified(holder) != _qualified(entry):
            raise ConfigError(
                f"The {self.kind} '{name}' is already {_qualified(holder)}; "
                f"register {_qualified(entry)} under another name."
            )
        return entry

    def _validated(self, value: object) -> C:
        if isinstance(value, self.base):
            self.name_of(value)
            return value
        if not isinstance(value, Mapping):
            message = f"got {shown(value)}; expected a mapping with the key '{self.key}'"
            raise _invalid(self.kind, message, (), value)
        settings = dict(value)
        name = settings.pop(self.key, None)
        if self.key not in value:
            name = self._choose(settings) if self._choose else self.default
            self._refuse_misspelt_key(settings, name)
        if name is None:
            message = f"missing; expected one of {', '.join(self.names())}"
            raise _invalid(self.kind, message, (self.key,), value)
        if not isinstance(name, str) or name not in self:
            raise _invalid(self.kind, self._unknown(name), (self.key,), name)
        return self.type(name).model_validate(settings)

    def _refuse_misspelt_key(self, settings: Mapping[str, Any], default: str | None) -> None:
        known = self.type(default).model_fields if default else {}
        meant = nearest(self.key, (str(key) for key in settings.keys() - known.keys()))
        if meant:
            raise _invalid(self.kind, unknown_key(meant, [self.key]), (meant,), settings[meant])

    def _unknown(self, name: object) -> str:
        hint = did_you_mean(name, self._types) if isinstance(name, str) else ""
        advice = "" if hint else "; if it is your own, list its file under 'plugins'"
        return f"unknown {self.kind} {shown(name)}{hint or ';'} registered: {', '.join(self) or 'none'}{advice}"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # Entries are looked up when a value is validated: they may be registered after the model is made.
        return core_schema.no_info_plain_validator_function(
            self._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(self._serialized, info_arg=True),
        )

    def _serialized(self, config: C, info: SerializationInfo) -> dict[str, Any]:
        fields = config.model_dump(
            mode=info.mode,
            exclude=info.exclude,  # type: ignore[arg-type]  # pydantic has two names for one type
            exclude_unset=info.exclude_unset,
            exclude_defaults=info.exclude_defaults,
            exclude_none=info.exclude_none,
        )
        return {self.key: self.name_of(config), **fields}

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        described: JsonSchemaValue = {
            "title": self.kind,
            "type": "object",
            "x-registry": self.kind,
            "discriminator": {"propertyName": self.key},
        }
        if self._is_describing:
            # An entry that holds another entry of its own kind: describe it once, or this would not end.
            return described
        self._is_describing = True
        try:
            choices = [self._choice(name, handler) for name in self]
            return described | ({"oneOf": choices} if choices else {})
        finally:
            self._is_describing = False

    def _choice(self, name: str, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        entry = handler.resolve_ref_schema(handler(self.type(name).__pydantic_core_schema__))
        required = ([] if name == self.default else [self.key]) + entry.get("required", [])
        properties = {self.key: {"const": name, "type": "string"}, **entry.get("properties", {})}
        # Pydantic shows a default that is an entry of a registry without its registered name.
        defaults = self.type(name).model_construct().model_dump(mode="json", warnings=False)
        for key in defaults.keys() & properties.keys():
            properties[key] = {**properties[key], "default": defaults[key]}
        return {**entry, "properties": properties, "required": required}


@functools.cache
def installed() -> tuple[EntryPoint, ...]:
    """The entry points of all installed packages: one look per process, since it reads a file of each package."""
    return tuple(point for package in distributions() for point in package.entry_points)


def _qualified(entry: type) -> str:
    return f"{entry.__module__}.{entry.__qualname__}"


def _invalid(title: str, message: str, place: tuple[str | int, ...], value: object) -> ValidationError:
    return ValidationError.from_exception_data(title, [problem(message, place, value)])
