"""Descriptions of arrays, to and from messages."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rl4sys.experience import ArraySpec
from rl4sys.wire.errors import ContractViolation
from rl4sys.wire.generated import arrays_pb2

MOST_ARRAYS = 1024
"""The most arrays that one group may have."""
MOST_AXES = 8
MOST_VALUES = 1 << 31
"""The most values of one row of an array."""
_LONGEST_NAME = 256

_NUMBERS = {
    "bool": arrays_pb2.ELEMENT_TYPE_BOOL,
    "uint8": arrays_pb2.ELEMENT_TYPE_UINT8,
    "uint16": arrays_pb2.ELEMENT_TYPE_UINT16,
    "uint32": arrays_pb2.ELEMENT_TYPE_UINT32,
    "uint64": arrays_pb2.ELEMENT_TYPE_UINT64,
    "int8": arrays_pb2.ELEMENT_TYPE_INT8,
    "int16": arrays_pb2.ELEMENT_TYPE_INT16,
    "int32": arrays_pb2.ELEMENT_TYPE_INT32,
    "int64": arrays_pb2.ELEMENT_TYPE_INT64,
    "float16": arrays_pb2.ELEMENT_TYPE_FLOAT16,
    "float32": arrays_pb2.ELEMENT_TYPE_FLOAT32,
    "float64": arrays_pb2.ELEMENT_TYPE_FLOAT64,
}
_NAMES = {number: name for name, number in _NUMBERS.items()}


def encode_array(spec: ArraySpec) -> arrays_pb2.ArraySpec:
    """The message for one array."""
    if spec.dtype not in _NUMBERS:
        raise ContractViolation(
            f"Array '{spec.name}' has dtype {spec.dtype}, which cannot travel; use one of {', '.join(_NUMBERS)}."
        )
    return arrays_pb2.ArraySpec(name=spec.name, element_type=_NUMBERS[spec.dtype], shape=spec.shape)


def decode_array(message: arrays_pb2.ArraySpec) -> ArraySpec:
    """The description in a message, or `ContractViolation`."""
    name = require_label("An array", message.name)
    if message.element_type not in _NAMES:
        raise ContractViolation(
            f"Array '{name}' has element type {message.element_type}, which this version does not know. "
            f"Upgrade the older of client and server."
        )
    return ArraySpec(name, _NAMES[message.element_type], decode_shape(name, message.shape))


def decode_arrays(group: str, messages: Iterable[arrays_pb2.ArraySpec]) -> tuple[ArraySpec, ...]:
    """All descriptions of a group, whose names must differ."""
    specs: dict[str, ArraySpec] = {}
    for message in messages:
        spec = decode_array(message)
        if spec.name in specs or len(specs) == MOST_ARRAYS:
            raise ContractViolation(
                f"The {group} has '{spec.name}' twice, or more than {MOST_ARRAYS} arrays. Name each array once."
            )
        specs[spec.name] = spec
    return tuple(specs.values())


def decode_shape(name: str, lengths: Iterable[int]) -> tuple[int, ...]:
    """The shape of the array `name`, with as many axes and values as anything real can have."""
    shape = tuple(lengths)
    if len(shape) > MOST_AXES or math.prod(shape) > MOST_VALUES:
        shown = shape if len(shape) <= MOST_AXES else f"of {len(shape)} axes"
        raise ContractViolation(
            f"Array '{name}' has shape {shown}; at most {MOST_AXES} axes and {MOST_VALUES} values can travel."
        )
    return shape


def require_label(what: str, name: str) -> str:
    """A name within a message; any text will do, if it is neither empty nor endless."""
    if not name or len(name) > _LONGEST_NAME or len(name.encode()) > _LONGEST_NAME:
        raise ContractViolation(
            f"{what} has the name {name[:32]!r} of {len(name)} characters; expected 1 to {_LONGEST_NAME} bytes."
        )
    return name
