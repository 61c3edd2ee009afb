"""Recovery of a log after a close, a kill or a power cut: cuts unacknowledged records, and refuses damage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rl4sys.records import committed_end
from rl4sys.records.committed_end import CommittedEnd, Ends
from rl4sys.records.errors import RecordsDamaged
from rl4sys.records.files import File, Files
from rl4sys.records.frames import (
    FRAME_BYTES,
    HEADER_BYTES,
    Frame,
    decode_frame,
    encode_header,
    file_name,
    find_frame,
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


def recover(directory: Path, files: Files, covered: int = 0) -> Recovered:
    """Open the newest file, clean up after a crash, and create the files of a new log.

    Records below `covered` are not needed any more: their damage is passed over, and they stay where they are.
    """
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
        settled = _settle(file, path, firsts[-1], known.durable if known else 0, covered)
        if settled is None:
            # Its end is damaged and covered: the file stays as it is, and the log continues in another one.
            finished.append((firsts[-1], file.size()))
            file.close()
            firsts.append(covered)
            file = create_file(directory, files, covered)
            settled = HEADER_BYTES, covered, 0
        length, end, cut_bytes = settled
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


def _settle(file: File, path: Path, first: int, durable: int, covered: int) -> tuple[int, int, int] | None:
    """Length, end and cut bytes of the newest file, after its sound part is synced and the rest is cut.

    None if its end is damaged, and every record that was ever acknowledged is covered.
    """
    data = file.read(0, file.size())
    fault = header_fault(data, first)
    if fault and covered > first and find_frame(data, 0, range(first, covered + 1)) >= 0:
        # Everything in a header follows from the name of the file.
        file.write(0, encode_header(first))
    elif fault and data and 0 < durable <= covered:
        return None
    elif fault:
        raise RecordsDamaged(f"{path} is damaged: {fault}.{_ADVICE}")
    offset, number, unsure = HEADER_BYTES, first, len(data)
    while (frame := _frame_from(data, offset, number, covered)) is not None:
        if frame.number >= max(first, durable):
            unsure = min(unsure, frame.begin - FRAME_BYTES)
        offset, number = frame.end, frame.number + 1
    known = max(durable, _durable_after(data, offset, number))
    if number < known <= covered and offset < len(data):
        return None
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


def _frame_from(data: bytes, offset: int, number: int, covered: int) -> Frame | None:
    """The frame of a record; if it is damaged, the next sound one, as long as only covered records are passed over."""
    frame = decode_frame(data, offset)
    if frame and frame.number == number:
        return frame
    place = find_frame(data, offset + 1, range(number + 1, covered + 1)) if number < covered else -1
    return decode_frame(data, place) if place >= 0 else None


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
