"""Seeded damage to messages: of bytes, of fields at any depth, and of several messages cut together."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

EXTREMES = (0, 1, 2, 127, 128, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
_NOT_A_NUMBER = struct.pack("<f", float("nan"))
_INFINITE = struct.pack("<f", float("inf"))
_HUGE = struct.pack("<f", 3.3e38)
_BROKEN_TEXT = b"\xed\xa0\x80"
"""Half of a surrogate pair: bytes that are no UTF-8, though they look like it."""
_LENGTH_DELIMITED = 2

Mutation = Callable[[bytes, Sequence[bytes], random.Random], bytes]


def mutated(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """One to three changes to a valid message; `others` are valid ones to splice it with."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        data = chance.choice(_MUTATIONS)(data, others, chance)
    return data


def varint(number: int) -> bytes:
    """A number as it travels; a negative one in the ten bytes that it would take."""
    number &= 2**64 - 1
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])


def fields_of(data: bytes) -> list[tuple[int, int, bytes]]:
    """Number, wire type and content of each field; empty if these bytes are no message."""
    fields: list[tuple[int, int, bytes]] = []
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind, start = tag & 7, at
        if kind == 0:
            _, at = _read_varint(data, at)
        elif kind == _LENGTH_DELIMITED:
            length, start = _read_varint(data, at)
            at = start + length
        else:
            at += {1: 8, 5: 4}.get(kind, len(data) + 1)
        if tag < 8 or not start <= at <= len(data):
            return []
        fields.append((tag >> 3, kind, data[start:at]))
    return fields


def field(number: int, kind: int, content: bytes, length: int | None = None) -> bytes:
    """One field; a length other than that of its content is a lie."""
    lead = varint(number << 3 | kind)
    if kind != _LENGTH_DELIMITED:
        return lead + content
    return lead + varint(len(content) if length is None else length) + content


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at
    return 0, len(data) + 1


def _flip(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def _replace(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    new = chance.choice((b"\0", b"\x7f", b"\x80", b"\xff", chance.randbytes(4), _NOT_A_NUMBER, _INFINITE, _HUGE))
    return data[:at] + new + data[at + len(new) :]


def _truncate(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _insert(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.randbytes(chance.randint(1, 12)) + data[at:]


def _double(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at : at + chance.randint(1, 64)] + data[at:]


def _splice(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others)
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


def _append_message(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Protobuf merges what follows into what came before."""
    return data + chance.choice(others)


def _change_field(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Change one field, at the top or, as often, somewhere within it."""
    fields = fields_of(data)
    if not fields:
        return _flip(data, others, chance)
    at = chance.randrange(len(fields))
    number, kind, content = fields[at]
    parts = [field(*one) for one in fields]
    if kind == _LENGTH_DELIMITED and len(content) > 1 and chance.random() < 0.55:
        parts[at] = field(number, kind, _change_field(content, others, chance))
    else:
        parts[at] = _changed(number, kind, content, parts[at], chance)
    return b"".join(parts)


def _changed(number: int, kind: int, content: bytes, whole: bytes, chance: random.Random) -> bytes:
    match chance.randrange(9):
        case 0:
            return b""
        case 1:
            return whole * chance.choice((2, 3, 70))
        case 2:
            return field(number, chance.randrange(8), content)
        case 3:
            return field(chance.choice((1, 2, 3, 15, 16, 999, 2**29 - 1)), kind, content)
        case 4:
            return whole + field(chance.randint(20, 2**20), _LENGTH_DELIMITED, chance.randbytes(9))
        case 5 if kind == _LENGTH_DELIMITED:
            lie = chance.choice((0, 1, len(content) + 1, 2 * len(content), *EXTREMES))
            return field(number, kind, content, lie)
        case 6 if kind == _LENGTH_DELIMITED:
            return field(number, kind, _other_content(content, chance))
        case _:
            return field(number, 0, varint(chance.choice(EXTREMES) - chance.randrange(2)))


def _other_content(content: bytes, chance: random.Random) -> bytes:
    size = len(content)
    match chance.randrange(8):
        case 0:
            return b""
        case 1:
            return b"A" * chance.choice((1, 64, 129, 257, 5_000))
        case 2:
            return content + _BROKEN_TEXT
        case 3:
            return "…\0\n\u202e😀".encode() * chance.choice((1, 60))
        case 4:
            return (chance.choice((_NOT_A_NUMBER, _INFINITE, _HUGE)) * (size // 4 + 1))[:size]
        case 5:
            return content[: size // 2]
        case 6:
            return content * 2
        case _:
            return chance.randbytes(size)


_MUTATIONS: tuple[Mutation, ...] = (
    _flip,
    _replace,
    _truncate,
    _insert,
    _double,
    _splice,
    _append_message,
    *[_change_field] * 9,
)
