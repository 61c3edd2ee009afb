"""An outbox on disk: every parcel and every settlement is a record in a log of its own."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from rl4sys.failpoints import failpoint
from rl4sys.records.durability import Durability
from rl4sys.records.errors import LogBroken, LogFull, RecordsDamaged
from rl4sys.records.files import Files
from rl4sys.records.outbox import Offer, OfferOutcome, Outbox, OutboxLimits, Parcel
from rl4sys.records.reader import Record, RecordReader
from rl4sys.records.record_log import RecordLog

_PARCEL = struct.Struct("<BQQ")
_SETTLED = struct.Struct("<BQQQ")
_PACK = struct.Struct("<BQQI")
_IS_PARCEL, _IS_SETTLED, _IS_PACK = 1, 2, 3


def fresh_epoch() -> int:
    """A new epoch, unique even if the directory was lost: 63 random bits."""
    return secrets.randbits(63)


class DiskOutbox:
    """An `Outbox` whose unsettled parcels survive a kill, with their epochs and sequence numbers.

    It keeps them in memory as well, so the capacity bounds both; the files take at most about twice that. With the
    default durability parcels survive a kill of the client, not a power cut. Not safe for several threads.
    """

    def __init__(
        self,
        directory: Path,
        epoch: int,
        limits: OutboxLimits | None = None,
        *,
        durability: Durability = Durability.OS,
        file_bytes: int = 4 << 20,
        files: Files | None = None,
    ) -> None:
        self._log = RecordLog(directory, durability=durability, file_bytes=file_bytes, files=files)
        self._file_bytes = file_bytes
        self._notes: list[bytes] = []
        """Settlements that are not in the log yet; never more than there are unsettled parcels in it."""
        try:
            parcels, self._places = _fold(self._log)
        except BaseException:
            self._log.close()
            raise
        self._outbox = Outbox(epoch, limits, parcels)

    @property
    def epoch(self) -> int:
        """The epoch of new parcels."""
        return self._outbox.epoch

    @property
    def backlog(self) -> int:
        """Parcels not yet settled, in flight or not, of this start and of earlier ones."""
        return self._outbox.backlog

    @property
    def backlog_segments(self) -> int:
        """The segments in them."""
        return self._outbox.backlog_segments

    @property
    def backlog_bytes(self) -> int:
        """Their cost in bytes; at most the capacity, unless an earlier start left more: see `Outbox.backlog_bytes`."""
        return self._outbox.backlog_bytes

    @property
    def in_flight(self) -> int:
        """Parcels sent and not yet settled."""
        return self._outbox.in_flight

    @property
    def drops(self) -> Mapping[str, int]:
        """Segments that will never be sent, by reason, since this start."""
        return self._outbox.drops

    @property
    def broken(self) -> OSError | None:
        """Why nothing more is accepted; None while the disk works. Parcels in memory can still be delivered."""
        return self._log.broken

    @property
    def disk_bytes(self) -> int:
        """Present size of the files."""
        return self._log.size

    def unsettled(self) -> list[Parcel]:
        """Every parcel not yet settled, oldest first."""
        return self._outbox.unsettled()

    def offer(self, payload: bytes, count: int = 1) -> Offer:
        """Add a payload; accepted means written. A full disk drops it (`disk_full`); a broken one also raises."""
        offer = self._outbox.offer(payload, count)
        if offer.parcel is None:
            return offer
        failpoint("before parcel")
        earlier = len(self._notes)
        self._note_settled(offer.evicted)
        try:
            # Evictions last: if a crash tears this append, no parcel was evicted in vain.
            numbers = self._append([*self._notes[:earlier], _encode(offer.parcel), *self._notes[earlier:]])
        except LogFull:
            self._outbox.refuse(*offer.parcel.key, "disk_full")
            return Offer(OfferOutcome.DROPPED, evicted=offer.evicted)
        except LogBroken:
            self._outbox.refuse(*offer.parcel.key, "disk_failed")
            raise
        self._notes = []
        failpoint("after parcel")
        self._places[offer.parcel.key] = numbers[earlier]
        self._tidy()
        return offer

    def take(self, limit_bytes: int) -> list[Parcel]:
        """The next parcels to send, now in flight."""
        return self._outbox.take(limit_bytes)

    def acknowledge(self, epoch: int, sequences: range) -> list[Parcel]:
        """The server has stored these permanently; returns those that were still here."""
        settled = self._outbox.acknowledge(epoch, sequences)
        self._note_settled(settled)
        self._tidy()
        return settled

    def refuse(self, epoch: int, sequence: int, reason: str) -> Parcel | None:
        """The server will never store this one: drop it, counted under the reason."""
        parcel = self._outbox.refuse(epoch, sequence, reason)
        self._note_settled([parcel] if parcel is not None else [])
        self._tidy()
        return parcel

    def settle_pack(self, epoch: int, sequence: int, refused: Mapping[int, str]) -> Parcel | None:
        """The server has stored a pack but for these numbers, which it will never store: count them by reason."""
        parcel = self._outbox.settle_pack(epoch, sequence, refused)
        self._note_settled([parcel] if parcel is not None else [])
        self._tidy()
        return parcel

    def disconnected(self) -> None:
        """Parcels in flight may be lost: send them again, first and in order."""
        self._outbox.disconnected()

    def close(self) -> None:
        """Close the files; unsettled parcels are there at the next start."""
        self._log.close()

    def _note_settled(self, parcels: Iterable[Parcel]) -> None:
        """Note that these need not be sent again, consecutive ones together. A full disk delays only the notes."""
        begin = end = epoch = -1
        for parcel in parcels:
            self._places.pop(parcel.key, None)
            if parcel.key != (epoch, end):
                if end > begin:
                    self._notes.append(_SETTLED.pack(_IS_SETTLED, epoch, begin, end))
                epoch, begin = parcel.key
            end = parcel.sequences.stop
        if end > begin:
            self._notes.append(_SETTLED.pack(_IS_SETTLED, epoch, begin, end))

    def _tidy(self) -> None:
        """Write the notes, and remove files without unsettled parcels.

        Settlements lost on a failing disk are sent once more after a restart, and ignored by the server as repeats; the
        next offer reports the failure.
        """
        with suppress(LogFull, LogBroken):
            if self._notes:
                failpoint("before settlement")
                self._append(self._notes)
                self._notes = []
                failpoint("after settlement")
            if self._log.size > 2 * max(self._outbox.limits.capacity_bytes, self.backlog_bytes) + 2 * self._file_bytes:
                self._rewrite()
        failpoint("before outbox prune")
        with suppress(LogBroken):
            self._log.prune(next(iter(self._places.values()), self._log.end))
        failpoint("after outbox prune")

    def _rewrite(self) -> None:
        """Append every unsettled parcel to the log again, because old ones keep too many files."""
        failpoint("before parcels rewritten")
        unsettled = self._outbox.unsettled()
        numbers = self._append([_encode(parcel) for parcel in unsettled])
        failpoint("after parcels rewritten")
        self._places = {parcel.key: number for parcel, number in zip(unsettled, numbers, strict=True)}

    def _append(self, payloads: list[bytes]) -> range:
        numbers = self._log.append(payloads)
        self._log.commit()
        return numbers


def _encode(parcel: Parcel) -> bytes:
    if parcel.segments == 1:
        return _PARCEL.pack(_IS_PARCEL, *parcel.key) + parcel.payload
    return _PACK.pack(_IS_PACK, *parcel.key, parcel.segments) + parcel.payload


def _fold(log: RecordLog) -> tuple[list[Parcel], dict[tuple[int, int], int]]:
    """The unsettled parcels in a log, oldest first, and the number of the record that holds each."""
    parcels: dict[tuple[int, int], Parcel] = {}
    places: dict[tuple[int, int], int] = {}
    reader = RecordReader(log.directory, log.first, files=log.files)
    try:
        while records := reader.read():
            for record in records:
                _apply(record, parcels, places)
    finally:
        reader.close()
    return list(parcels.values()), places


def _apply(record: Record, parcels: dict[tuple[int, int], Parcel], places: dict[tuple[int, int], int]) -> None:
    kind, payload = record.payload[:1], record.payload
    if parcel := _decoded(kind, payload):
        # Rewritten: the parcel keeps its order, and its place is now that of the newer record.
        places.pop(parcel.key, None)
        places[parcel.key] = record.number
        parcels.setdefault(parcel.key, parcel)
    elif kind == bytes([_IS_SETTLED]) and len(payload) == _SETTLED.size:
        _, epoch, begin, end = _SETTLED.unpack(payload)
        for sequence in range(begin, end):
            parcels.pop((epoch, sequence), None)
            places.pop((epoch, sequence), None)
    else:
        raise RecordsDamaged(
            f"Record {record.number} of the outbox is neither a parcel nor a settlement. It was written by a newer "
            f"version, or this is not an outbox: use that version, or choose another directory."
        )


def _decoded(kind: bytes, payload: bytes) -> Parcel | None:
    """The parcel in a record; None if it is something else."""
    if kind == bytes([_IS_PARCEL]) and len(payload) >= _PARCEL.size:
        _, epoch, sequence = _PARCEL.unpack_from(payload)
        return Parcel(epoch, sequence, payload[_PARCEL.size :])
    if kind == bytes([_IS_PACK]) and len(payload) >= _PACK.size:
        _, epoch, sequence, count = _PACK.unpack_from(payload)
        return Parcel(epoch, sequence, payload[_PACK.size :], count)
    return None
