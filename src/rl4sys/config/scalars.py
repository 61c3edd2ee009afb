"""Reads numbers and booleans strictly: `1e6` is a whole number, and `true` is not a number."""

from __future__ import annotations

import collections.abc
import re
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic_core import InitErrorDetails

from rl4sys.config.errors import problem, shown

Place = tuple[str | int, ...]
Checked = tuple[Any, list[InitErrorDetails]]

_EXPONENT = re.compile(r"[-+]?\d[\d_]*(\.\d*)?[eE][-+]?\d+")
_LISTS = (
    list,
    tuple,
    set,
    frozenset,
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Set,
)
_MAPPINGS = (dict, collections.abc.Mapping)
_EXPECTED = {bool: "true or false", int: "a whole number", float: "a number"}


def checked(value: Any, annotation: Any, place: Place = ()) -> Checked:
    """The value ready for pydantic, and the problems that pydantic would be too lenient to see.

    Pydantic takes `true` for 1 and `"yes"` for true; and it does not read the text `1e6` as a whole number.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return checked(value, arguments[0], place)
    if origin in (Union, types.UnionType):
        return _alternatives(value, arguments, place)
    if origin in _LISTS and isinstance(value, list | tuple):
        return _elements(value, arguments, place)
    if origin in _MAPPINGS and isinstance(value, collections.abc.Mapping):
        parts = {key: checked(item, arguments[1], (*place, str(key))) for key, item in value.items()}
        return {key: item for key, (item, _) in parts.items()}, [p for _, found in parts.values() for p in found]
    return _scalar(value, annotation, place)


def _scalar(value: Any, annotation: Any, place: Place) -> Checked:
    if annotation is bool and not isinstance(value, bool):
        return value, [_refused(value, annotation, place)]
    if annotation in (int, float) and isinstance(value, bool):
        return value, [_refused(value, annotation, place)]
    if annotation is int and isinstance(value, str) and _EXPONENT.fullmatch(value):
        number = float(value)
        return (int(number), []) if number.is_integer() else (value, [_refused(value, annotation, place)])
    return value, []


def _elements(values: list[Any] | tuple[Any, ...], arguments: tuple[Any, ...], place: Place) -> Checked:
    annotations = arguments if len(arguments) == len(values) else arguments[:1] * len(values)
    if Ellipsis in annotations:
        annotations = arguments[:1] * len(values)
    pairs = zip(values, annotations, strict=True)
    parts = [checked(value, annotation, (*place, i)) for i, (value, annotation) in enumerate(pairs)]
    return [item for item, _ in parts], [p for _, found in parts for p in found]


def _alternatives(value: Any, annotations: tuple[Any, ...], place: Place) -> Checked:
    """A union refuses a value only when all its members do; one that takes it as it stands is preferred."""
    if value is None and type(None) in annotations:
        return value, []
    members = [annotation for annotation in annotations if annotation is not type(None)]
    if len(members) == 1:
        return checked(value, members[0], place)
    refused = [member for member in members if _refuses(value, member)]
    if len(refused) == len(members):
        expected = " or ".join(_expectation(member) for member in refused)
        return value, [problem(f"got {shown(value)}; expected {expected}", place, value)]
    results = [checked(value, member, place)[0] for member in members if member not in refused]
    return (value if any(result is value for result in results) else results[0]), []


def _refuses(value: Any, annotation: Any) -> bool:
    if get_origin(annotation) is Literal:
        return value not in get_args(annotation)
    if annotation is str:
        return not isinstance(value, str)
    return bool(checked(value, annotation)[1])


def _expectation(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return " or ".join(shown(choice) for choice in get_args(annotation))
    return _EXPECTED.get(annotation) or ("text" if annotation is str else str(annotation))


def _refused(value: Any, annotation: Any, place: Place) -> InitErrorDetails:
    return problem(f"got {shown(value)}; expected {_EXPECTED[annotation]}", place, value)
