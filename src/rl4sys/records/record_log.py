"""The writer of a log: numbered records in rotating files, committed when they are safe."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from rl4sys.records.committed_end import Ends
from rl4sys.records.durability import Durability, files_for
from rl4sys.records.errors import NO_SPACE, LogBroken, LogClosed, LogFull
from rl4sys.records.files import Files
from rl4sys.records.frames import HEADER_BYTES, encode_frame, file_name
from rl4sys.records.recovery import create_file, recover

_log = logging.getLogger(__name__)

LOCK_NAME = "lock"


class RecordLog:
    """A directory of record files with one writer. Not safe for several threads: use `DurableLog`.

    Opening cleans up after a crash: a torn tail is cut (`cut_bytes`; of its records, `lost` could already be read,
    which cannot happen with fsync), and damage of acknowledged records raises `RecordsDamaged`, except of those below
    `covered`, which are not needed now. A record is safe when `commit` has returned; until then a crash may lose it,
    always together with everything appended after it.
    """

    def __init__(
        self,
        directory: Path,
        *,
        durability: Durability = Durability.FSYNC,
        file_bytes: int = 16 << 20,
        files: Files | None = None,
        covered: int = 0,
    ) -> None:
        self.directory = directory
        self.durability = durability
        self.files = files or files_for(durability)
        self._file_bytes = file_bytes
        self._broken: OSError | None = None
        self._closed = False
        self.files.make_directory(directory)
        self._lock = self.files.lock(directory / LOCK_NAME)
        try:
            recovered = recover(directory, self.files, covered)
        except BaseException:
            self._lock.release()
            raise
        self._finished = recovered.finished
        self._file, self._ends = recovered.file, recovered.ends
        self._file_first, self._length = recovered.first, recovered.length
        self._end = self._committed = self._durable = recovered.end
        self.cut_bytes = recovered.cut_bytes
        self.lost = recovered.lost
        if self.lost:
            _log.warning(
                "%s has lost its last %d records, which were not on the disk yet: the machine stopped, or they are "
                "damaged. Commit with durability fsync where that must not happen.",
                directory,
                self.lost,
            )

    @property
    def first(self) -> int:
        """The number of the oldest record (`end` if there is none)."""
        return self._finished[0][0] if self._finished else self._file_first

    @property
    def end(self) -> int:
        """The number of the next record."""
        return self._end

    @property
    def committed(self) -> int:
        """Records below this number are safe and visible to readers."""
        return self._committed

    @property
    def size(self) -> int:
        """Bytes of all record files."""
        return sum(length for _, length in self._finished) + self._length

    @property
    def broken(self) -> OSError | None:
        """The error that broke the log; None while it works."""
        return self._broken

    def append(self, payloads: Sequence[bytes]) -> range:
        """Append records and return their numbers. Not safe before `commit`.

        With `LogFull` nothing was appended and the log still works; with `LogBroken` it is unknown what was.
        """
        self._require_working()
        if self._length >= self._file_bytes and self._end > self._file_first:
            self._rotate()
        numbers = range(self._end, self._end + len(payloads))
        data = b"".join(
            encode_frame(number, self._durable, payload) for number, payload in zip(numbers, payloads, strict=True)
        )
        try:
            self._file.write(self._length, data)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise self._break(error) from error
            self._undo_append()
            raise self._full() from error
        self._length += len(data)
        self._end = numbers.stop
        return numbers

    def commit(self) -> int:
        """Make everything appended safe and visible to readers, and return the number up to which that holds."""
        self._require_working()
        if self._committed < self._end:
            try:
                if self.durability is Durability.FSYNC:
                    self._file.sync()
                    self._durable = self._end
                self._ends.publish(Ends(self._end, self._durable))
            except OSError as error:
                raise self._break(error) from error
            self._committed = self._end
        return self._committed

    def sync(self) -> None:
        """Commit, and wait until everything is on the disk, at any durability."""
        self.commit()
        try:
            self._file.sync()
        except OSError as error:
            raise self._break(error) from error
        self._durable = self._end

    def prune(self, before: int, *, rotate: bool = False) -> int:
        """Remove the files that hold only records below `before`, and return the oldest record that is left.

        The newest file is only among them with `rotate`, which starts another one first.
        """
        self._require_working()
        if rotate and self._file_first < self._end <= before:
            self._rotate()
        old = [first for place, (first, _) in enumerate(self._finished) if self._file_after(place) <= before]
        try:
            # Oldest first, so that a crash in between leaves no gap.
            for first in old:
                self.files.remove(self.directory / file_name(first))
                del self._finished[0]
            if old:
                self.files.sync_directory(self.directory)
        except OSError as error:
            raise self._break(error) from error
        return self.first

    def close(self) -> None:
        """Commit and close; a broken log is only closed, so that it can be reopened."""
        if self._closed:
            return
        try:
            if self._broken is None:
                self.commit()
                self._sync_ends()
        finally:
            self._closed = True
            self._file.close()
            self._ends.close()
            self._lock.release()

    def _rotate(self) -> None:
        """Start the next file. The finished one is synced first, at any durability: only the last file can be torn."""
        try:
            self._file.sync()
            self._durable = self._end
            self._ends.publish(Ends(self._end, self._durable))
        except OSError as error:
            raise self._break(error) from error
        self._committed = self._end
        self._sync_ends()
        try:
            file = create_file(self.directory, self.files, self._end)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise self._break(error) from error
            # Nothing refers to the new file yet: the next attempt writes it again from its first byte.
            raise self._full() from error
        self._file.close()
        self._finished.append((self._file_first, self._length))
        self._file, self._file_first, self._length = file, self._end, HEADER_BYTES

    def _sync_ends(self) -> None:
        try:
            self._ends.sync()
        except OSError as error:
            raise self._break(error) from error

    def _undo_append(self) -> None:
        """Remove what was written of a failed append."""
        try:
            self._file.truncate(self._length)
        except OSError as error:
            raise self._break(error) from error

    def _file_after(self, place: int) -> int:
        """First record of the file that follows a finished one."""
        return self._finished[place + 1][0] if place + 1 < len(self._finished) else self._file_first

    def _full(self) -> LogFull:
        return LogFull(f"{self.directory} has no space for more records. Nothing was lost; free space on its disk.")

    def _break(self, cause: OSError) -> LogBroken:
        self._broken = cause
        return self._broken_error(cause)

    def _broken_error(self, cause: OSError) -> LogBroken:
        return LogBroken(
            f"{self.directory} accepts no more records: {cause}. Acknowledged records are safe. "
            f"Check the disk, then reopen the log, which verifies its contents."
        )

    def _require_working(self) -> None:
        if self._closed:
            raise LogClosed(f"{self.directory} was closed. Open it again to append.")
        if self._broken is not None:
            raise self._broken_error(self._broken) from self._broken
