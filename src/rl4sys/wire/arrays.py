"""Array specs to and from messages."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rl4sys.experience import ArraySpec
from rl4sys.wire.errors import ContractViolation
from rl4sys.wire.generated import arrays_pb2

MAX_ARRAYS = 1024
"""Arrays of one group."""
MAX_AXES = 8
MAX_VALUES = 1 << 31
"""Values of one row of an array."""
_MAX_NAME_BYTES = 256

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
            f"Array '{spec.name}' has dtype {spec.dtype}, which cannot be sent; use one of {', '.join(_NUMBERS)}."
        )
    return arrays_pb2.ArraySpec(name=spec.name, element_type=_NUMBERS[spec.dtype], shape=spec.shape)


def decode_array(message: arrays_pb2.ArraySpec) -> ArraySpec:
    """The array spec in a message, or `ContractViolation`."""
    name = require_label("An array", message.name)
    if message.element_type not in _NAMES:
        raise ContractViolation(
            f"Array '{name}' has element type {message.element_type}, which this version does not know. "
            f"Upgrade the older of client and server."
        )
    return ArraySpec(name, _NAMES[message.element_type], decode_shape(name, message.shape))


def decode_arrays(group: str, messages: Iterable[arrays_pb2.ArraySpec]) -> tuple[ArraySpec, ...]:
    """All array specs of a group, whose names must differ."""
    specs: dict[str, ArraySpec] = {}
    for message in messages:
        spec = decode_array(message)
        if spec.name in specs or len(specs) == MAX_ARRAYS:
            raise ContractViolation(
                f"The {group} has '{spec.name}' twice, or more than {MAX_ARRAYS} arrays. Name each array once."
            )
        specs[spec.name] = spec
    return tuple(specs.values())


def decode_shape(name: str, lengths: Iterable[int]) -> tuple[int, ...]:
    """The shape of the array `name`, within the limits on axes and values."""
    shape = tuple(lengths)
    if len(shape) > MAX_AXES or math.prod(shape) > MAX_VALUES:
        shown = shape if len(shape) <= MAX_AXES else f"of {len(shape)} axes"
        raise ContractViolation(
            f"Array '{name}' has shape {shown}; at most {MAX_AXES} axes and {MAX_VALUES} values can be sent."
        )
    return shape


def require_label(what: str, name: str) -> str:
    """A name within a message: any text that is neither empty nor too long."""
    if not name or len(name) > _MAX_NAME_BYTES or len(name.encode()) > _MAX_NAME_BYTES:
        raise ContractViolation(
            f"{what} has the name {name[:32]!r} of {len(name)} characters; expected 1 to {_MAX_NAME_BYTES} bytes."
        )
    return name
