"""The format of a record file: a header, then one frame after another. FORMAT.md is the specification."""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

FORMAT_VERSION = 1
SUFFIX = ".records"
MAX_PAYLOAD = 2**30
"""Bytes in one record. A limit far below 2³² rules out overflow of lengths and offsets in C++."""

_MAGIC = b"RL4SRECS"
_HEADER = struct.Struct("<8sIQ")
_MARK = b"\xf5rec"
_FRAME = struct.Struct("<4sIQQ")
_CRC = struct.Struct("<I")

HEADER_BYTES = _HEADER.size + _CRC.size
FRAME_BYTES = _FRAME.size + _CRC.size


class Frame(NamedTuple):
    """The position of a record within some bytes."""

    number: int
    durable: int
    """Every record below this number was on the disk when this one was written."""
    begin: int
    end: int
    """The payload is `data[begin:end]`; the next frame begins at `end`."""


def file_name(first: int) -> str:
    """The name of the file whose first record has this number; names sort like numbers."""
    return f"{first:020d}{SUFFIX}"


def first_numbers(names: list[str]) -> list[int]:
    """The first record numbers of the record files among some names, in order; other files are ignored."""
    stems = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
    return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isascii() and stem.isdigit())


def encode_header(first: int) -> bytes:
    """The beginning of a file whose first record has this number."""
    head = _HEADER.pack(_MAGIC, FORMAT_VERSION, first)
    return head + _CRC.pack(crc32(head))


def header_fault(data: bytes, first: int) -> str | None:
    """Why these bytes are not the header of the file that begins with record `first`; None if they are."""
    if len(data) < HEADER_BYTES:
        return f"it has {len(data)} bytes, and a header takes {HEADER_BYTES}"
    magic, version, number = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        return "it does not start like a file of records"
    if _CRC.unpack_from(data, _HEADER.size)[0] != crc32(data[: _HEADER.size]):
        return "the CRC of its header does not match"
    if version != FORMAT_VERSION:
        return f"it has format {version}, and this version of rl4sys reads format {FORMAT_VERSION}"
    return None if number == first else f"its header says that record {number} comes first"


def encode_frame(number: int, durable: int, payload: bytes) -> bytes:
    """One record as bytes of a file."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"A record of {len(payload)} bytes is too long; at most {MAX_PAYLOAD} are allowed. Split it.")
    head = _FRAME.pack(_MARK, len(payload), number, durable)
    return b"".join((head, _CRC.pack(crc32(payload, crc32(head))), payload))


def frame_length(data: bytes, offset: int) -> int:
    """The length that the frame at `offset` states; 0 if there is no complete frame header."""
    if offset + FRAME_BYTES > len(data) or not data.startswith(_MARK, offset):
        return 0
    length: int = _FRAME.unpack_from(data, offset)[1]
    return FRAME_BYTES + length if length <= MAX_PAYLOAD else 0


def decode_frame(data: bytes, offset: int) -> Frame | None:
    """The frame at `offset` if it is complete and its CRC matches."""
    if offset + FRAME_BYTES > len(data):
        return None
    mark, length, number, durable = _FRAME.unpack_from(data, offset)
    begin = offset + FRAME_BYTES
    end = begin + length
    if mark != _MARK or end > len(data):
        return None
    view = memoryview(data)
    crc = crc32(view[begin:end], crc32(view[offset : offset + _FRAME.size]))
    return Frame(number, durable, begin, end) if crc == _CRC.unpack_from(data, begin - _CRC.size)[0] else None


def find_mark(data: bytes, offset: int) -> int:
    """Where the next frame could start, from `offset` on; -1 if nowhere."""
    return data.find(_MARK, offset)


def find_frame(data: bytes, offset: int, numbers: range) -> int:
    """Where the next sound frame with one of these numbers starts, from `offset` on; -1 if nowhere."""
    while (offset := find_mark(data, offset)) >= 0:
        frame = decode_frame(data, offset)
        if frame and frame.number in numbers:
            return offset
        offset += 1
    return -1
