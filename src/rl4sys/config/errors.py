"""Error messages about configs: the place, the value, what was expected, and a suggestion."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from rl4sys.config.other_names import meant_key, usual_name
from rl4sys.suggestions import did_you_mean

Place = tuple[str, ...]

_CUSTOM = "config_problem"
_UNKNOWN_KEY = "unknown key"
_EXPECTED = {
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "string_pattern_mismatch": "text that matches {pattern}",
    "string_too_short": "text of {min_length} letters or more",
    "string_too_long": "text of {max_length} letters or fewer",
    "too_short": "at least {min_length}",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "none_required": "null",
}


class ConfigError(ValueError):
    """A config cannot be used. The message names every problem, each on a line of its own."""

    @classmethod
    def explaining(
        cls,
        error: ValidationError,
        source: str | Path | None = None,
        overrides: Sequence[Place] = (),
        keys: Sequence[str] = (),
    ) -> ConfigError:
        """The problems that pydantic found, each with the override or else the file that it comes from.

        With the `keys` of the whole config, the suggestion for an unknown one may be in another section.
        """
        details = error.errors(include_url=False)
        lines = [_line(detail, keys, of_override=_is_of_override(detail, overrides)) for detail in details]
        if len(lines) == 1:
            of_override = _is_of_override(details[0], overrides)
            origin = "The override " if of_override else f"{source}: " if source else ""
            if blamed := _blamed_in(details[0], overrides):
                origin = f"The override{'s' if len(blamed) > 1 else ''} {' and '.join(blamed)}: "
            return cls(f"{origin}{lines[0]}")
        given = [_is_of_override(detail, overrides) or bool(_blamed_in(detail, overrides)) for detail in details]
        where = " in the overrides" if all(given) else f" in {source}" if source else ""
        if not all(given):
            lines = [f"{line} (an override)" if of else line for line, of in zip(lines, given, strict=True)]
        return cls("\n  ".join([f"{len(lines)} problems{where}:", *lines]))


def custom_problem(message: str) -> PydanticCustomError:
    """A problem in our own words; the place is added when it is reported."""
    return PydanticCustomError(_CUSTOM, "{message}", {"message": message})


def problem(message: str, place: tuple[str | int, ...], value: object) -> InitErrorDetails:
    """One problem at a place below the value that is being validated."""
    return InitErrorDetails(type=custom_problem(message), loc=place, input=value)


def describe(details: Sequence[ErrorDetails]) -> str:
    """One sentence about one value. Several details are the alternatives of a union that all refused it."""
    first, value = details[0], details[0]["input"]
    if first["type"] in (_CUSTOM, "missing"):
        return first["msg"] if first["type"] == _CUSTOM else "missing; a value is required"
    if first["type"] in ("value_error", "assertion_error"):
        reason = str(first["ctx"]["error"])
        return reason if isinstance(value, Mapping) else f"got {shown(value)}; {reason}"
    expected = list(dict.fromkeys(_expected(detail) for detail in details))
    choices = [choice for detail in details for choice in _choices(detail)]
    hint = did_you_mean(value, choices) if isinstance(value, str) else ""
    return f"got {shown(value)}; expected {' or '.join(expected)}{hint}"


def unknown_key(key: str, allowed: Iterable[str]) -> str:
    """The message about an unknown key."""
    names = list(allowed)
    usual = usual_name(key, names)
    hint = f"; did you mean '{usual}'?" if usual else did_you_mean(key, names)
    return f"{_UNKNOWN_KEY}{hint or '; allowed: ' + (', '.join(names) or 'none')}"


def shown(value: object) -> str:
    """A value as a user would write it in a file, cut short when long."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _is_of_override(detail: ErrorDetails, overrides: Sequence[Place]) -> bool:
    place = tuple(map(str, detail["loc"]))
    if detail["msg"].startswith(_UNKNOWN_KEY):
        # It may be a section that only the override of a key within it has.
        overrides = [override[: len(place)] for override in overrides]
    return any(place[: len(override)] == override for override in overrides)


def _blamed_in(detail: ErrorDetails, overrides: Sequence[Place]) -> list[str]:
    """The overrides within a section that a sentence about the section as a whole mentions."""
    place = tuple(map(str, detail["loc"]))
    within = [override for override in overrides if override[: len(place)] == place and len(override) > len(place)]
    words = set(re.findall(r"\w+", describe([detail])))
    return [".".join(override) for override in within if override[len(place)] in words]


def _line(detail: ErrorDetails, keys: Sequence[str], *, of_override: bool) -> str:
    place = ".".join(map(str, detail["loc"]))
    sentence = describe([detail])
    if keys and sentence.startswith(_UNKNOWN_KEY) and (meant := _meant(detail, keys)) not in (None, place):
        sentence = f"{_UNKNOWN_KEY}; did you mean '{meant}'?"
    elif of_override and "." in place and sentence.startswith(_UNKNOWN_KEY):
        # An override is typed as a whole, so the suggestion has the whole key, too.
        section = place.rpartition(".")[0]
        sentence = re.sub(r"did you mean '([^'.]+)'", rf"did you mean '{section}.\1'", sentence)
    return f"{place}: {sentence}" if place else sentence


def _meant(detail: ErrorDetails, keys: Sequence[str]) -> str | None:
    place = [str(part) for part in detail["loc"]]
    if isinstance(detail["input"], Mapping):
        # A section that does not exist; with one key in it, that key was meant.
        sections = sorted({key.rpartition(".")[0] for key in keys} - {""})
        if (section := meant_key(place, sections)) is not None:
            return section
        place = [*place, *map(str, detail["input"])] if len(detail["input"]) == 1 else place
    return meant_key(place, keys)


def _expected(detail: ErrorDetails) -> str:
    if choices := _choices(detail):
        quoted = [f"'{choice}'" for choice in choices]
        return quoted[0] if len(quoted) == 1 else f"one of {', '.join(quoted)}"
    if detail["type"] in _EXPECTED:
        return _EXPECTED[detail["type"]].format_map(detail.get("ctx", {}))
    return detail["msg"].removeprefix("Input should be ")


def _choices(detail: ErrorDetails) -> list[str]:
    if detail["type"] not in ("literal_error", "enum"):
        return []
    context: Mapping[str, Any] = detail.get("ctx", {})
    return re.findall(r"'([^']*)'", context["expected"])
