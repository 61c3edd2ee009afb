"""A log as it lies on the disk, read without changing it: which records it has, and which are missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rl4sys.records import DiskFiles, Record, committed_end
from rl4sys.records.committed_end import CommittedEnd, Ends
from rl4sys.records.frames import HEADER_BYTES, Frame, decode_frame, file_name, find_frame, first_numbers, header_fault


class Gap(NamedTuple):
    """Bytes that are not sound frames, although acknowledged records were there."""

    path: Path
    offset: int
    begin: int
    """The first record that is missing."""
    end: int
    """One past the last one; equal to `begin` if no record is missing."""


@dataclass(frozen=True, slots=True)
class LogScan:
    """What a log consists of. Records of a torn tail were never acknowledged, and do not count."""

    directory: Path
    first: int
    end: int
    """One past the last record that can be read."""
    known: int
    """One past the last record that was certainly on the disk once; records below are missing if they are not there."""
    gaps: tuple[Gap, ...] = ()
    header_faults: tuple[tuple[Path, str], ...] = ()
    """Files whose header is damaged, and how. All of it follows from the name of the file."""
    torn: tuple[Path, int] | None = None
    """The newest file, and the offset from which it was never acknowledged."""
    unsynced: int = 0
    """Records that readers could read and that are gone: only without fsync."""
    has_ends: bool = True
    """Whether the file 'committed' can be read; opening the log restores it."""

    def missing(self, begin: int) -> int:
        """How many records from `begin` on are missing."""
        return sum(max(0, gap.end - max(gap.begin, begin)) for gap in self.gaps)


def scan(directory: Path, *, is_live: bool) -> LogScan | None:
    """Read every byte of a log; None if it has no files. While a server is writing, only committed records count."""
    ends = published_ends(directory)
    limit = ends.committed if is_live and ends is not None else sys.maxsize
    known = ends.durable if ends is not None else 0
    gaps: list[Gap] = []
    faults: list[tuple[Path, str]] = []
    first, number, end_offset, size = -1, 0, 0, 0
    files = _files(directory, limit)
    for path, start, stop in files:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            if not is_live:
                raise
            # The server has removed what it no longer needs, oldest first.
            continue
        if first < 0:
            first = start
        fault = header_fault(data, start)
        if fault and len(data) > 0:
            faults.append((path, fault))
        number, end_offset, size = start, HEADER_BYTES, len(data)
        for offset, frame in sound_frames(data, start, min(stop, limit)):
            if frame.number != number or offset != end_offset:
                gaps.append(Gap(path, end_offset, number, frame.number))
            number, end_offset = frame.number + 1, frame.end
            known = max(known, frame.durable)
        if stop < limit and number < stop:
            gaps.append(Gap(path, end_offset, number, stop))
    if first < 0:
        return None if not known else LogScan(directory, known, known, known, (Gap(directory, 0, 0, known),))
    if is_live and ends is not None:
        known = max(known, ends.committed)
    path, torn = files[-1][0], None
    tail = [gap for gap in gaps if gap.path == path and gap.begin >= known]
    if tail and not is_live:
        # Complete frames behind a broken one that was never acknowledged are part of the torn tail.
        gaps = [gap for gap in gaps if gap not in tail]
        number, end_offset = tail[0].begin, tail[0].offset
    if number < known:
        gaps.append(Gap(path, end_offset, number, known))
    elif size > end_offset and not is_live:
        torn = (path, end_offset)
    unsynced = max(0, ends.committed - max(number, known)) if ends is not None and not is_live else 0
    return LogScan(
        directory, first, number, known, tuple(gaps), tuple(faults), torn, unsynced, has_ends=ends is not None
    )


def sound_records(log: LogScan, begin: int = 0) -> Iterator[Record]:
    """Every record of a log that can be read, from a number on."""
    for path, start, stop in _files(log.directory, log.end):
        if stop > begin:
            data = path.read_bytes()
            for _, frame in sound_frames(data, start, min(stop, log.end)):
                if frame.number >= begin:
                    yield Record(frame.number, data[frame.begin : frame.end])


def sound_frames(data: bytes, first: int, stop: int) -> Iterator[tuple[int, Frame]]:
    """Offset and frame of each record in [first, stop) of a file that can be read; damaged bytes are passed over."""
    offset, number = HEADER_BYTES, first
    while number < stop:
        frame = decode_frame(data, offset)
        if frame is None or frame.number != number:
            offset = find_frame(data, offset + 1, range(number, stop))
            frame = decode_frame(data, offset) if offset >= 0 else None
            if frame is None:
                return
        yield offset, frame
        offset, number = frame.end, frame.number + 1


def published_ends(directory: Path) -> Ends | None:
    """The ends that the writer of a log published; None if that file is missing or damaged."""
    try:
        ends = CommittedEnd(DiskFiles().open_to_read(directory / committed_end.NAME))
    except FileNotFoundError:
        return None
    try:
        # A write may be under way, which takes nanoseconds.
        return next((found for _ in range(100) if (found := ends.read_now()) is not None), None)
    finally:
        ends.close()


def _files(directory: Path, limit: int) -> list[tuple[Path, int, int]]:
    """Path, first record and first record of the next file, for each file with records below a limit."""
    firsts = first_numbers([path.name for path in directory.iterdir()]) if directory.is_dir() else []
    return [
        (directory / file_name(first), first, stop)
        for first, stop in pairwise([*firsts, sys.maxsize])
        if first < limit or first == firsts[0]
    ]
