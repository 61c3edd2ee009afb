"""Recovery of a log after a close, a kill or a power cut: cuts unacknowledged records, and refuses damage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rl4sys.records import committed_end
from rl4sys.records.committed_end import CommittedEnd, Ends
from rl4sys.records.errors import RecordsDamaged
from rl4sys.records.files import File, Files
from rl4sys.records.frames import (
    HEADER_BYTES,
    decode_frame,
    encode_header,
    file_name,
    find_mark,
    first_numbers,
    header_fault,
)


@dataclass(frozen=True, slots=True)
class Recovered:
    """A log ready for appending: everything in it is on the disk and published to readers."""

    finished: list[tuple[int, int]]
    """First record and size of each file that is full, oldest first."""
    file: File
    first: int
    length: int
    end: int
    cut_bytes: int
    """A torn tail that was removed: written at the time of the crash, never acknowledged as on the disk."""
    lost: int
    """Records of it that readers could already read: only if commits do not wait for the disk."""
    ends: CommittedEnd


def recover(directory: Path, files: Files) -> Recovered:
    """Open the newest file, clean up after a crash, and create the files of a new log."""
    for name in files.names(directory):
        if name.endswith(".tmp"):
            files.remove(directory / name)
    # A file may have been renamed and its directory not synced when the last writer died.
    files.sync_directory(directory)
    firsts = first_numbers(files.names(directory))
    known = _known_ends(directory, files)
    if not firsts:
        if known and known.durable:
            raise RecordsDamaged(f"{directory} held {known.durable} records and has no record file now.{_ADVICE}")
        create_file(directory, files, 0).close()
        firsts = [0]
    finished = [(first, _size(files, directory / file_name(first))) for first in firsts[:-1]]
    path = directory / file_name(firsts[-1])
    file = files.open(path)
    try:
        length, end, cut_bytes = _settle(file, path, firsts[-1], known.durable if known else 0)
        ends = _publish(directory, files, Ends(end, end))
    except BaseException:
        file.close()
        raise
    lost = max(0, known.committed - end) if known else 0
    return Recovered(finished, file, firsts[-1], length, end, cut_bytes, lost, ends)


def create_file(directory: Path, files: Files, first: int) -> File:
    """A new record file with its header, created atomically."""
    aside = directory / f"{file_name(first)}.tmp"
    file = files.create(aside)
    try:
        file.write(0, encode_header(first))
        file.sync()
        files.rename(aside, directory / file_name(first))
        files.sync_directory(directory)
    except BaseException:
        file.close()
        raise
    return file


def _settle(file: File, path: Path, first: int, durable: int) -> tuple[int, int, int]:
    """Length, end and cut bytes of the newest file, after its sound part is synced and the rest is cut."""
    data = file.read(0, file.size())
    fault = header_fault(data, first)
    if fault:
        raise RecordsDamaged(f"{path} is damaged: {fault}.{_ADVICE}")
    offset, number, unsure = HEADER_BYTES, first, len(data)
    while (frame := decode_frame(data, offset)) and frame.number == number:
        if number == max(first, durable):
            unsure = offset
        offset, number = frame.end, number + 1
    known = max(durable, _durable_after(data, offset, number))
    if number < known:
        raise RecordsDamaged(
            f"{path}, byte {offset}: record {number} is damaged or missing, and records up to {known - 1} were "
            f"acknowledged.{_ADVICE}"
        )
    if unsure < offset:
        # After a failed sync the kernel may hold these bytes as clean though they never reached the disk.
        file.write(unsure, data[unsure:offset])
    if offset < len(data):
        file.truncate(offset)
    file.sync()
    return offset, number, len(data) - offset


def _durable_after(data: bytes, offset: int, number: int) -> int:
    """How far the log was on the disk, according to complete frames after a broken one.

    Pages reach the disk in any order, so such frames may be part of a torn tail; unless they say that records from
    `number` on had been synced before them.
    """
    known = 0
    while (offset := find_mark(data, offset + 1)) >= 0:
        frame = decode_frame(data, offset)
        if frame and number < frame.durable <= frame.number:
            known = max(known, frame.durable)
    return known


def _known_ends(directory: Path, files: Files) -> Ends | None:
    """The ends that the last writer published; None if that file is missing or damaged, which loses no record."""
    try:
        ends = CommittedEnd(files.open_to_read(directory / committed_end.NAME))
    except FileNotFoundError:
        return None
    try:
        return ends.read_now()
    finally:
        ends.close()


def _publish(directory: Path, files: Files, numbers: Ends) -> CommittedEnd:
    """Publish the ends in place, even over damaged ones: readers keep that file open."""
    try:
        ends = CommittedEnd(files.open(directory / committed_end.NAME))
    except FileNotFoundError:
        return committed_end.create(directory, files, numbers)
    try:
        ends.publish(numbers)
    except BaseException:
        ends.close()
        raise
    return ends


def _size(files: Files, path: Path) -> int:
    file = files.open_to_read(path)
    try:
        return file.size()
    finally:
        file.close()


_ADVICE = " Restore it from a backup; or move the directory away and start a new log, without the records of this one."
