"""The inbox of a learner: segments become durable here, deduplicated, bounded, acknowledged after the group commit."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rl4sys.failpoints import failpoint
from rl4sys.records import (
    Backlogged,
    Durability,
    DurableLog,
    Files,
    LogBroken,
    LogClosed,
    LogFull,
    MemoryFiles,
    RecordLog,
    RecordReader,
    RecordsDamaged,
    RecordsGone,
)
from rl4sys.records.errors import NO_SPACE
from rl4sys.records.files import LinkedDiskFiles
from rl4sys.server.learners.held_data import DataHeld, covered_position, require_whole, ways_out
from rl4sys.server.learners.learner_commands import LearnerCommand, decode_record
from rl4sys.server.learners.storage_watch import identity
from rl4sys.server.learners.stored_segments import StoredSegment, StoredSegments
from rl4sys.server.options import ServiceLimits
from rl4sys.wire import FailureReason

_log = logging.getLogger(__name__)

_REOPEN_SECONDS = 1.0


class StorageFailed(Exception):
    """The log cannot be written now. Nothing of this push is acknowledged; earlier records are safe."""


@dataclass(slots=True)
class Offered:
    """What became of pushed segments. Those stored and repeated may be acknowledged once `waiting` is done."""

    stored: list[int] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)
    full: FailureReason | None = None
    """Why the other segments were not stored."""
    waiting: list[Future[range]] = field(default_factory=list)


class InboxLoad(NamedTuple):
    """How much was stored since the inbox was opened, and how much of it waits."""

    stored_steps: int
    waiting_steps: int
    filled: float
    """The part of the inbox that is full."""


class _Queued(NamedTuple):
    number: int
    client: str
    length: int
    steps: int
    segments: int


def _queued(number: int, entry: StoredSegment) -> _Queued:
    return _Queued(number, entry.client, len(entry.segment), entry.steps, entry.segments)


class Inbox:
    """The writing side of a learner's log. Any thread may call any method."""

    def __init__(
        self,
        directory: Path,
        limits: ServiceLimits,
        durability: Durability,
        committed: Callable[[], None],
        clock: Callable[[], float],
        files: Files | None = None,
        file_bytes: int = 16 << 20,
    ) -> None:
        self.directory = directory
        self.limits, self._durability, self._file_bytes = limits, durability, file_bytes
        self._committed, self._clock = committed, clock
        self._lock = threading.RLock()
        self._reopening = threading.Lock()
        self._pruning = threading.Lock()
        self._pending: dict[tuple[str, int, int], Future[range]] = {}
        self._pending_records = 0
        self._queue: deque[_Queued] = deque()
        self._reserved: Counter[str] = Counter()
        """Bytes by client that are being written to the log, or in it and not folded."""
        self._folded = 0
        self._stored_steps = self._waiting_steps = 0
        self._failure = ""
        """Why the last segments could not be stored."""
        self._suspended = ""
        """Why nothing is stored, by order of `suspend`."""
        self.is_full = False
        """Whether the last segments did not fit on the disk."""
        self._tried = clock()
        self.files = files or (MemoryFiles() if durability is Durability.MEMORY else LinkedDiskFiles())
        """The files of the log; a reader in this process needs them if they are in memory."""
        self.held = ""
        """Why nothing is stored until an operator decides about the data; empty if they are sound."""
        self.stored = StoredSegments()
        self._written = 0
        """The position of the identities on the disk."""
        self._identity: tuple[int, int] | None = None
        self._records: RecordLog | None = None
        self._log: DurableLog | None = None
        try:
            self._open()
        except (RecordsDamaged, RecordsGone) as error:
            self.held = f"{error} {ways_out(directory)}"
        except DataHeld as error:
            self.held = str(error)

    @property
    def problem(self) -> str:
        """Why nothing can be stored at present; empty while it can."""
        return self._suspended or self._failure

    def suspend(self, problem: str) -> None:
        """Store nothing, for this reason; an empty one ends that."""
        self._suspended = problem

    def removal(self) -> str:
        """What is gone of its directory; empty if nothing is."""
        log = self.directory / "log"
        if self._identity is None or identity(log) == self._identity:
            return ""
        return (
            f"{log} was removed or replaced while the server was running. Nothing is acknowledged for this learner any "
            f"more. End the server, restore {self.directory} from a backup (rl4sys data restore), and start it again."
        )

    def known(self, client: str, epoch: int, sequences: range) -> int:
        """How many of these segments are in the log already, so that they need not be validated again."""
        with self._lock:
            return self.stored.deduplication.among(client, epoch, sequences)

    def offer(self, entries: Sequence[StoredSegment]) -> Offered:
        """Append the segments that are new and fit. Raises `StorageFailed` if the log is broken: `repair` it first."""
        if self.held or self._suspended:
            raise StorageFailed(self.held or self._suspended)
        broken = self._broken
        if broken is not None:
            raise StorageFailed(self.problem or str(broken))
        offered = Offered()
        fresh: list[StoredSegment] = []
        with self._lock:
            for entry in entries:
                if not self._take_in(entry, fresh, offered):
                    break
            if fresh:
                self._append(fresh, offered)
        return offered

    def _take_in(self, entry: StoredSegment, fresh: list[StoredSegment], offered: Offered) -> bool:
        """Add an entry to the fresh ones unless it is known; false if it does not fit."""
        client, epoch, numbers = entry.client, entry.epoch, entry.sequences
        known = self.stored.deduplication.among(client, epoch, numbers)
        waiting = [f for n in numbers if (f := self._pending.get((client, epoch, n))) is not None]
        if known + len(waiting) == entry.segments:
            offered.repeated += numbers
            offered.waiting += dict.fromkeys(waiting)
            return True
        if known or waiting:
            # A part of this pack was sent in another way: only the rest of it may be stored.
            return all(self._take_in(alone, fresh, offered) for alone in entry.alone())
        if (full := self._overflow(entry, len(fresh))) is not None:
            offered.full = full
            return False
        self._reserve(client, len(entry.segment))
        fresh.append(entry)
        return True

    def append_command(self, command: LearnerCommand) -> Future[range]:
        """Append a command of an operator, whatever the limits; the future has its number once it is safe."""
        if self._log is None or self._broken is not None:
            raise StorageFailed(self.held or self.problem or str(self._broken))
        with self._lock:
            try:
                future = self._log.append([command.encode()])
            except (Backlogged, LogClosed) as error:
                raise StorageFailed(str(error)) from error
            future.add_done_callback(self._settle_command)
        return future

    @property
    def is_broken(self) -> bool:
        """Whether nothing can be stored before `repair` succeeds."""
        return self._broken is not None

    @property
    def _broken(self) -> OSError | None:
        return self._records.broken if self._records is not None else None

    def repair(self) -> None:
        """Reopen a broken log, which may take a while: after a failed sync only that shows what is on the disk.

        Raises `StorageFailed` if that fails, or did within the last second.
        """
        if self.is_broken:
            # One thread at a time; the others find it repaired, or just tried.
            with self._reopening:
                self._reopen()

    def folded(self, position: int) -> None:
        """The learner has folded every record below `position`: they no longer count against the limits."""
        with self._lock:
            self._folded = max(self._folded, position)
            while self._queue and self._queue[0].number < position:
                queued = self._queue.popleft()
                self._reserve(queued.client, -queued.length)
                self._waiting_steps -= queued.steps

    @contextmanager
    def keeping_records(self) -> Iterator[None]:
        """Remove nothing from the log meanwhile, because it is copied. Pushes continue."""
        with self._pruning:
            yield

    @property
    def first_record(self) -> int:
        """The number of the oldest record in the log: 0 if nothing was removed."""
        return self._records.first if self._records is not None else 0

    def prune(self, before: int) -> None:
        """Remove old log files, after the identities of their segments are on the disk. Pushes continue meanwhile."""
        if not self._pruning.acquire(blocking=False):
            # The log is being copied, or pruned already. The next checkpoint tries again.
            return
        try:
            with self._lock:
                encoded, position, log = self.stored.encode(), self.stored.position, self._log
            if log is None:
                return
            try:
                # The file must never be ahead of the log, not even after a power cut.
                log.sync()
                self._write_identities(encoded, position)
                # A fast worker may be ahead of the records noted here.
                log.prune(min(before, self._written), rotate=self.is_full or bool(self._suspended))
            except (OSError, LogFull, LogBroken, LogClosed) as error:
                # Old files only take space; the next checkpoint tries again.
                _log.warning("Old records in %s could not be removed: %s", self.directory, error)
        finally:
            self._pruning.release()

    def _write_identities(self, encoded: bytes, position: int) -> None:
        try:
            StoredSegments.write(self.directory, encoded)
            self._written = position
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            # What the older file has can be removed from the log nevertheless, which makes space.
            _log.warning("There is no space for the identities of the segments in %s.", self.directory)

    def queued(self) -> tuple[int, int]:
        """How many segments are stored and not folded, and their bytes."""
        with self._lock:
            segments = sum(queued.segments for queued in self._queue)
            return segments, sum(queued.length for queued in self._queue)

    def load(self) -> InboxLoad:
        """How much there is to learn; cheap enough for every push."""
        with self._lock:
            segments, length = len(self._queue) / self.limits.inbox_segments, self._reserved.total()
            return InboxLoad(self._stored_steps, self._waiting_steps, max(segments, length / self.limits.inbox_bytes))

    @property
    def unfolded(self) -> int:
        """How many records the learner has not folded."""
        with self._lock:
            return max(0, self.stored.position - self._folded)

    @property
    def log_bytes(self) -> int:
        """Size of the log."""
        return self._records.size if self._records is not None else 0

    def close(self) -> None:
        """Commit pending records and close the files."""
        if self._log is not None:
            self._log.close()

    def _append(self, fresh: list[StoredSegment], offered: Offered) -> None:
        if self._log is None:
            raise StorageFailed(self.held)
        try:
            future = self._log.append([entry.encode() for entry in fresh])
        except (Backlogged, LogClosed) as error:
            for entry in fresh:
                self._reserve(entry.client, -len(entry.segment))
            if isinstance(error, LogClosed):
                raise StorageFailed(str(error)) from error
            offered.full = FailureReason.INBOX_FULL
            return
        for entry in fresh:
            self._pending |= {(entry.client, entry.epoch, number): future for number in entry.sequences}
            offered.stored += entry.sequences
        self._pending_records += len(fresh)
        offered.waiting.append(future)
        # Within the lock, so that calls come in the order of the records.
        future.add_done_callback(partial(self._settle, fresh))

    def _settle(self, fresh: list[StoredSegment], future: Future[range]) -> None:
        failpoint("before acknowledgement")
        with self._lock:
            for entry in fresh:
                for number in entry.sequences:
                    del self._pending[entry.client, entry.epoch, number]
            self._pending_records -= len(fresh)
            error = future.exception()
            self.is_full = isinstance(error, LogFull)
            if error is not None:
                self._note_problem(str(error))
                for entry in fresh:
                    self._reserve(entry.client, -len(entry.segment))
                return
            self._note_problem("")
            for number, entry in zip(future.result(), fresh, strict=True):
                self._note(number, entry)
        self._committed()

    def _settle_command(self, future: Future[range]) -> None:
        with self._lock:
            error = future.exception()
            self._note_problem("" if error is None else str(error))
            if error is None:
                self.stored.note_command(future.result().start)
        self._committed()

    def _note_problem(self, problem: str) -> None:
        """Remember why nothing is stored, and log when that begins and ends."""
        before, self._failure = self._failure, problem
        if problem and not before:
            _log.error("Nothing is acknowledged for %s: %s", self.directory.name, problem, extra=self._named)
        elif before and not problem:
            _log.info("Experience for %s is stored again.", self.directory.name, extra=self._named)

    @property
    def _named(self) -> dict[str, str]:
        return {"learner": self.directory.name}

    def _note(self, number: int, entry: StoredSegment) -> None:
        length = len(entry.segment)
        self.stored.note(number, entry)
        self._stored_steps += entry.steps
        if number >= self._folded:
            self._queue.append(_queued(number, entry))
            self._waiting_steps += entry.steps
        else:
            self._reserve(entry.client, -length)

    def _overflow(self, entry: StoredSegment, ahead: int) -> FailureReason | None:
        """Why an entry does not fit after `ahead` others of its push. One alone always fits, however large."""
        total, length = self._reserved.total(), len(entry.segment)
        is_crowded = len(self._queue) + self._pending_records + ahead >= self.limits.inbox_segments
        if total and (total + length > self.limits.inbox_bytes or is_crowded):
            return FailureReason.INBOX_FULL
        own = self._reserved[entry.client]
        return FailureReason.QUOTA if own and own + length > self.limits.client_bytes else None

    def _reserve(self, client: str, length: int) -> None:
        self._reserved[client] += length
        if self._reserved[client] <= 0:
            del self._reserved[client]

    def _open(self) -> None:
        """Open the log and fold it into identities, counts and queue."""
        try:
            self._open_from(0)
        except RecordsDamaged as damage:
            covered = covered_position(self.directory)
            if not covered:
                raise
            self._open_from(covered)
            _log.warning(
                "The log of %s is damaged, in records that a sound checkpoint covers, so nothing is lost: %s",
                *(self.directory.name, damage),
                extra=self._named,
            )

    def _open_from(self, covered: int) -> None:
        """Open the log; the records below `covered` are not read."""
        records = RecordLog(
            self.directory / "log",
            durability=self._durability,
            file_bytes=self._file_bytes,
            files=self.files,
            covered=covered,
        )
        try:
            stored = StoredSegments.read(self.directory, records.first)
            self._written = stored.position
            require_whole(self.directory, records.end, max(stored.position, self.stored.position))
            queue: list[_Queued] = []
            reader = RecordReader(records.directory, max(covered, records.first), files=records.files)
            try:
                while batch := reader.read():
                    for record in batch:
                        entry = decode_record(record.payload)
                        if isinstance(entry, LearnerCommand):
                            stored.note_command(record.number)
                            continue
                        stored.note(record.number, entry)
                        queue.append(_queued(record.number, entry))
            finally:
                reader.close()
        except BaseException:
            records.close()
            raise
        with self._lock:
            self._records, self._log = records, DurableLog(records)
            self._identity = identity(records.directory)
            self.stored = stored
            self._queue = deque(queued for queued in queue if queued.number >= self._folded)
            self._reserved = Counter()
            self._waiting_steps = sum(queued.steps for queued in self._queue)
            self._stored_steps = max(self._stored_steps, self._waiting_steps)
            for queued in self._queue:
                self._reserve(queued.client, queued.length)

    def _reopen(self) -> None:
        broken = self._broken
        if broken is None or self._log is None:
            return
        if self._clock() - self._tried < _REOPEN_SECONDS:
            raise StorageFailed(self.problem or str(broken))
        self._tried = self._clock()
        if removal := self.removal():
            self._note_problem(removal)
            raise StorageFailed(removal)
        self._log.close()
        try:
            self._open()
        except (OSError, LogFull, LogBroken, RecordsDamaged, RecordsGone, DataHeld) as error:
            self._note_problem(str(error))
            raise StorageFailed(self.problem) from error
        _log.warning("%s was reopened after: %s", self.directory, broken)
        self._note_problem("")
