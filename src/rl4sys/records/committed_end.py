"""The small file in which a writer publishes, cheaply, how far other processes may read."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from rl4sys.records.errors import RecordsDamaged
from rl4sys.records.files import File, Files

NAME = "committed"

_MAGIC = b"RL4SCEND"
_BODY = struct.Struct("<8sQQ")
_CRC = struct.Struct("<I")
_BYTES = _BODY.size + _CRC.size
_ATTEMPTS = 1000


class Ends(NamedTuple):
    """Two record numbers, each one past the last record that it covers."""

    committed: int
    """Readers may read every record below."""
    durable: int
    """Every record below is on the disk; if one of these is missing, the log is damaged, not torn."""


class CommittedEnd:
    """The open file, for the writer and for readers. It is written in place, so it can be kept open."""

    def __init__(self, file: File) -> None:
        self._file = file

    def publish(self, ends: Ends) -> None:
        """Write the numbers. Never before the records themselves are as safe as they should be."""
        self._file.write(0, encode_ends(ends))

    def sync(self) -> None:
        """Wait until the numbers are on the disk. Only at rotation and closing: frames contain `durable` as well."""
        self._file.sync()

    def read_now(self) -> Ends | None:
        """The numbers in the file; None if a write is under way or the file is damaged."""
        data = self._file.read(0, _BYTES)
        if len(data) < _BYTES or _CRC.unpack_from(data, _BODY.size)[0] != crc32(data[: _BODY.size]):
            return None
        magic, committed, durable = _BODY.unpack_from(data)
        return Ends(committed, durable) if magic == _MAGIC else None

    def read(self) -> Ends:
        """The numbers in the file, read again while a write is under way (which takes nanoseconds)."""
        for _ in range(_ATTEMPTS):
            ends = self.read_now()
            if ends is not None:
                return ends
        raise RecordsDamaged(
            f"The file '{NAME}' of the log is damaged. Open the log for writing once: its records restore it."
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def create(directory: Path, files: Files, ends: Ends) -> CommittedEnd:
    """A new file, created atomically."""
    aside = directory / f"{NAME}.tmp"
    file = files.create(aside)
    try:
        file.write(0, encode_ends(ends))
        file.sync()
        files.rename(aside, directory / NAME)
        files.sync_directory(directory)
    except BaseException:
        file.close()
        raise
    return CommittedEnd(file)


def encode_ends(ends: Ends) -> bytes:
    """The contents of the file."""
    body = _BODY.pack(_MAGIC, *ends)
    return body + _CRC.pack(crc32(body))
