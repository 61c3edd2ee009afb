"""Parsing of messages with limits on bytes and fields."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from rl4sys.wire.errors import ContractViolation
from rl4sys.wire.message_sizes import REQUEST_BYTES, REQUEST_FIELDS

M = TypeVar("M", bound=Message)

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5
_LARGEST_TAG = 5
_LARGEST_VARINT = 10


def parse(kind: type[M], data: bytes, *, most_bytes: int = REQUEST_BYTES, most_fields: int = REQUEST_FIELDS) -> M:
    """The message in some bytes, or `ContractViolation`.

    An empty element of a repeated field takes two bytes on the wire and a hundred in memory. So fields are counted
    before anything is built, and a message with more than `most_fields` at its top level is refused. Messages with
    large nested fields are limited by `most_bytes` instead.
    """
    if len(data) > most_bytes:
        raise ContractViolation(
            f"A {kind.__name__} has {len(data)} bytes; at most {most_bytes} are accepted. Send less at once."
        )
    try:
        _count_fields(data, most_fields)
        return kind.FromString(data)
    except (IndexError, DecodeError) as error:
        raise ContractViolation(
            f"{len(data)} bytes are not a {kind.__name__}: {error}. They were damaged on the way, or the sender "
            f"speaks another protocol; compare the versions on both sides."
        ) from error
    except _TooManyFields as error:
        raise ContractViolation(
            f"A {kind.__name__} of {len(data)} bytes has more than {most_fields} fields. Send less at once."
        ) from error


class _TooManyFields(Exception):
    """There are more fields than the limit."""


def _count_fields(data: bytes, most: int) -> None:
    """Walk over the fields of the top level. An `IndexError` means that a number runs past the end.

    Written out for the common case, one byte of tag and up to two of length: it runs for every segment.
    """
    at, end, count = 0, len(data), 0
    while at < end:
        count += 1
        if count > most:
            raise _TooManyFields
        tag = data[at]
        at = at + 1 if tag < 128 else _past_varint(data, at, _LARGEST_TAG)
        wire_type = tag & 7
        if wire_type == _LENGTH_DELIMITED:
            low, at = data[at], at + 1
            if low < 128:
                at += low
            elif data[at] < 128:
                at += 1 + low - 128 + (data[at] << 7)
            else:
                past = _past_varint(data, at - 1, _LARGEST_TAG)
                at = past + _varint(data, at - 1, past)
        elif wire_type == _VARINT:
            at = at + 1 if data[at] < 128 else _past_varint(data, at, _LARGEST_VARINT)
        elif wire_type == _FIXED64:
            at += 8
        elif wire_type == _FIXED32:
            at += 4
        else:
            # Groups do not exist in proto3, and would hide fields from this count.
            raise DecodeError(f"the field before byte {at} is of wire type {wire_type}")
    if at > end:
        raise DecodeError(f"a field is {at - end} bytes longer than the message")


def _past_varint(data: bytes, at: int, longest: int) -> int:
    start = at
    while data[at] > 127:
        at += 1
        if at - start == longest:
            raise DecodeError(f"the number at byte {start} does not end")
    return at + 1


def _varint(data: bytes, start: int, end: int) -> int:
    return sum((data[at] & 127) << (7 * (at - start)) for at in range(start, end))
