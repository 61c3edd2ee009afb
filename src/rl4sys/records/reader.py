"""The reader of a log: verified records from a given number on, even while another process appends."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rl4sys.records import committed_end
from rl4sys.records.committed_end import CommittedEnd
from rl4sys.records.errors import RecordsDamaged, RecordsGone
from rl4sys.records.files import DiskFiles, File, Files
from rl4sys.records.frames import (
    HEADER_BYTES,
    Frame,
    decode_frame,
    file_name,
    find_frame,
    first_numbers,
    frame_length,
    header_fault,
)

_CHUNK = 1 << 20


class Record(NamedTuple):
    """A payload and its permanent number."""

    number: int
    payload: bytes


class RecordReader:
    """Reads a log from `position` on. It sees committed records only: with `fsync`, no crash can lose those."""

    def __init__(self, directory: Path, position: int = 0, *, files: Files | None = None) -> None:
        self.directory = directory
        self.position = position
        """The number of the next record that `read` returns."""
        self._files = files or DiskFiles()
        try:
            self._ends = CommittedEnd(self._files.open_to_read(directory / committed_end.NAME))
        except FileNotFoundError as error:
            raise RecordsGone(
                f"{directory} has no file '{committed_end.NAME}', so it is not a log. If it holds records, open it for "
                f"writing once: that restores the file."
            ) from error
        self._file: File | None = None
        self._path = directory
        self._data = b""
        self._data_at = 0
        self._cursor = 0
        self._sound_before = 0
        """Records below this number were committed before `_data` was read; later bytes may have changed."""

    def committed(self) -> int:
        """The end of the records that may be read now: one small read, cheap enough to poll."""
        return self._ends.read().committed

    def read(self, limit_bytes: int = _CHUNK) -> list[Record]:
        """The next available records: at least one if there is any, and no more once payloads reach the limit."""
        committed = self.committed()
        if self.position > committed:
            raise RecordsGone(
                f"{self.directory} ends before record {committed}, and record {self.position} was asked for. After a "
                f"power cut a log without fsync may lack its end: use a checkpoint at or before {committed}."
            )
        records: list[Record] = []
        taken = 0
        while self.position < committed and taken < limit_bytes:
            frame = self._next_frame(committed)
            payload = self._data[frame.begin : frame.end]
            records.append(Record(self.position, payload))
            self._cursor = frame.end
            self.position += 1
            taken += len(payload)
        return records

    def sync(self) -> None:
        """Wait until every record that was read is on the disk, whatever the durability of the writer."""
        if self._file is not None:
            # Files before this one were synced when the writer finished them.
            self._file.sync()

    def close(self) -> None:
        """Close the files."""
        self._ends.close()
        self._close_file()

    def _next_frame(self, committed: int) -> Frame:
        """The frame of the record at `position`, which is committed and therefore must be there."""
        file = self._file or self._find_file(committed)
        if self.position >= self._sound_before:
            self._fill(file, committed, 0)
        frame = decode_frame(self._data, self._cursor)
        for _ in range(2):
            # The buffer may end within the frame: first its header is read, then the length that this states.
            if frame is None:
                self._fill(file, committed, frame_length(self._data, self._cursor))
                frame = decode_frame(self._data, self._cursor)
        if frame is None and not self._data and self._file_follows():
            self._close_file()
            self._open()
            return self._next_frame(committed)
        if frame is None or frame.number != self.position:
            raise self._damaged(self._data_at + self._cursor, "damaged or missing")
        return frame

    def _fill(self, file: File, committed: int, length: int) -> None:
        """Read more from the cursor on."""
        self._data_at += self._cursor
        self._data, self._cursor = file.read(self._data_at, max(length, _CHUNK)), 0
        self._sound_before = committed

    def _find_file(self, committed: int) -> File:
        """Open the file that holds `position`, and skip the records before it."""
        firsts = first_numbers(self._files.names(self.directory))
        if not firsts or firsts[0] > self.position:
            raise self._gone(firsts)
        target = self.position
        self.position = max(first for first in firsts if first <= target)
        file = self._open(needs_header=self.position == target)
        try:
            while self.position < target:
                try:
                    self._cursor = self._next_frame(committed).end
                    self.position += 1
                except RecordsDamaged:
                    if not self._passes_damage(file, committed, target):
                        raise
        except BaseException:
            self._close_file()
            raise
        finally:
            self.position = target
        return file

    def _passes_damage(self, file: File, committed: int, target: int) -> bool:
        """Continue with the next sound frame: no reader asks for the records before the target. False without one."""
        data = file.read(0, file.size())
        place = find_frame(data, self._data_at + self._cursor + 1, range(self.position + 1, target + 1))
        frame = decode_frame(data, place) if place >= 0 else None
        if frame is None:
            return False
        self._data, self._data_at, self._cursor = data, 0, place
        self.position, self._sound_before = frame.number, committed
        return True

    def _open(self, *, needs_header: bool = True) -> File:
        """Open the file whose first record is at `position`."""
        self._path = self.directory / file_name(self.position)
        try:
            file = self._files.open_to_read(self._path)
        except FileNotFoundError as error:
            raise self._gone(first_numbers(self._files.names(self.directory))) from error
        fault = header_fault(file.read(0, HEADER_BYTES), self.position)
        if fault and needs_header:
            file.close()
            raise self._damaged(0, f"in a file that is damaged: {fault}")
        self._data, self._data_at, self._cursor, self._sound_before = b"", HEADER_BYTES, 0, 0
        self._file = file
        return file

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _file_follows(self) -> bool:
        return file_name(self.position) != self._path.name and file_name(self.position) in self._files.names(
            self.directory
        )

    def _gone(self, firsts: list[int]) -> RecordsGone:
        oldest = f"the oldest that is left is {firsts[0]}" if firsts else "no file of records is left"
        return RecordsGone(
            f"{self.directory} no longer has record {self.position}; {oldest}. Start from a newer checkpoint."
        )

    def _damaged(self, offset: int, what: str) -> RecordsDamaged:
        return RecordsDamaged(
            f"{self._path}, byte {offset}: record {self.position} is {what}. It was acknowledged, so it is not "
            f"skipped. Restore the file from a backup, or move the log away and continue from the newest checkpoint."
        )


def verify(directory: Path, files: Files | None = None) -> range:
    """Read a whole log and return the numbers of its records; `RecordsDamaged` names the first damaged one."""
    names = (files or DiskFiles()).names(directory)
    first = min(first_numbers(names), default=0)
    reader = RecordReader(directory, first, files=files)
    try:
        while reader.read():
            pass
        return range(first, reader.position)
    finally:
        reader.close()
