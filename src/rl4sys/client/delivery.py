"""Decides what to send next and what a reply means. It has no thread, clock or network, so simulations can drive it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from rl4sys.client.retries import Backoff, asked_pause
from rl4sys.records import Offer, Parcel
from rl4sys.wire import ContractViolation, RefusalReason, covered, split_pack
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2

HASH_BYTES = 32
"""Every payload in the outbox begins with the hash of the schema under which its segment was recorded."""
_MESSAGE_SLACK = 4096
_PER_SEGMENT = 24
"""Bytes that a segment takes in a request beyond its payload."""


class AnyOutbox(Protocol):
    """An outbox in memory or on disk."""

    @property
    def backlog(self) -> int:
        """Parcels not yet settled."""

    @property
    def backlog_segments(self) -> int:
        """The segments in them."""

    @property
    def backlog_bytes(self) -> int:
        """Their size against the capacity."""

    @property
    def in_flight(self) -> int:
        """Parcels sent and not yet settled."""

    @property
    def drops(self) -> Mapping[str, int]:
        """Segments that will never be sent, by reason."""

    def offer(self, payload: bytes, count: int = 1) -> Offer:
        """Add a payload of so many segments."""

    def take(self, limit_bytes: int) -> list[Parcel]:
        """The next parcels to send."""

    def acknowledge(self, epoch: int, sequences: range) -> list[Parcel]:
        """Note that the server has these."""

    def refuse(self, epoch: int, sequence: int, reason: str) -> Parcel | None:
        """Note that the server refuses this one permanently."""

    def settle_pack(self, epoch: int, sequence: int, refused: Mapping[int, str]) -> Parcel | None:
        """Note that the server has a pack but for these numbers, which it refuses permanently."""

    def disconnected(self) -> None:
        """Treat everything in flight as unsent."""


@dataclass(frozen=True, slots=True)
class Pace:
    """When waiting segments are sent."""

    interval: float
    """After this many seconds at the latest."""
    episodes: int | None
    """Sooner, once this many episodes have ended."""
    eager_bytes: int
    """Sooner, once this many bytes are waiting."""


@dataclass(frozen=True, slots=True)
class DeliverySession:
    """The session and its limits, from the reply to Join."""

    id: str
    learner: str
    max_message_bytes: int
    max_push_segments: int
    accepts_zstd: bool = False
    """Whether segments may be sent as zstd frames."""
    max_pack_segments: int = 0
    """Segments that may be sent as one pack; larger packs are split."""


class _Entry(NamedTuple):
    """What a request has of a parcel: the whole of it, or one segment of a pack that is split."""

    parcel: Parcel
    sequences: range
    body: bytes


@dataclass(slots=True)
class _Settling:
    """What is known of the segments of a pack."""

    stored: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)


class Delivery:
    """Sends parcels in groups and resends each until it is settled.

    A group has one epoch and one schema. There is only one request at a time, so a reply can never be taken for that
    of another request.
    """

    def __init__(self, outbox: AnyOutbox, pace: Pace, rng: random.Random) -> None:
        self.outbox = outbox
        self.acknowledged = 0
        self.refusals: list[str] = []
        """The server's messages about segments that it refuses permanently; the courier reports and clears them."""
        self._flushing = False
        self._pace = pace
        self._backoff = Backoff(rng)
        self._groups: list[list[_Entry]] = []
        self._settling: dict[tuple[int, int], _Settling] = {}
        """Packs in flight of which a part is settled, by their keys."""
        self._not_before = 0.0
        self._asked_until = 0.0
        """The end of the pause that the server asked for; `_not_before` may be later, after a failed call."""
        self._waiting_since: float | None = None if outbox.backlog == 0 else 0.0
        self._ended = 0

    def offered(self, now: float, *, ended: int) -> None:
        """Note that the outbox has a new parcel, with which so many episodes ended."""
        if self._waiting_since is None:
            self._waiting_since = now
        self._ended += ended

    def wait(self, now: float) -> float | None:
        """Seconds until there is something to do: 0 for now, None until something is offered."""
        if self.outbox.backlog == 0:
            return None
        pause = self._not_before - now
        if not self._groups and not self._is_due():
            pause = max(pause, (self._waiting_since or 0.0) + self._pace.interval - now)
        return max(0.0, pause)

    def flush(self) -> None:
        """Send everything at once, without the pause after a failed call."""
        self._flushing = True
        self._not_before = min(self._not_before, self._asked_until)

    def end_flush(self) -> None:
        """Send at the usual pace again."""
        self._flushing = False

    def pause(self, until: float) -> None:
        """Send nothing before this time."""
        self._not_before = self._asked_until = max(self._not_before, until)

    def request(self, session: DeliverySession) -> training_pb2.PushRequest | None:
        """The next message, if there is something to send."""
        while not self._groups:
            self._ended, self._waiting_since = 0, None
            parcels = self.outbox.take(session.max_message_bytes - _MESSAGE_SLACK)
            if not parcels:
                return None
            self._groups = self._grouped(parcels, session)
        group = self._groups[0]
        first = group[0].parcel
        return training_pb2.PushRequest(
            session=session.id,
            epoch=first.epoch,
            schema_hash=first.payload[:HASH_BYTES],
            segments=[
                training_pb2.PushedSegment(
                    sequence=entry.sequences.start,
                    segment=entry.body,
                    count=len(entry.sequences) if len(entry.sequences) > 1 else 0,
                )
                for entry in group
            ],
        )

    def answered(self, reply: training_pb2.PushReply, now: float) -> None:
        """Settle the parcels that the reply mentions; the others will be sent again."""
        group = self._groups.pop(0)
        alone = {entry.parcel.sequence: entry.parcel for entry in group if entry.parcel.segments == 1}
        for sequence in covered(reply.acknowledged, alone):
            self.acknowledged += len(self.outbox.acknowledge(alone[sequence].epoch, range(sequence, sequence + 1)))
        for refusal in reply.refused:
            parcel = alone.get(refusal.sequence)
            if parcel is not None and self.outbox.refuse(*parcel.key, _reason(refusal.reason)):
                self.refusals.append(refusal.message)
        self._settle_packs([entry for entry in group if entry.parcel.segments > 1], reply)
        self._backoff.succeeded()
        self._not_before = self._asked_until = now + asked_pause(reply.retry_after_ms)
        if not self._groups and self.outbox.in_flight:
            self._disconnected()
            # A server that leaves parcels out without asking for a pause must not be called in a tight loop.
            if reply.retry_after_ms == 0:
                self._not_before = now + self._backoff.failed()
        if self.outbox.backlog and self._waiting_since is None:
            self._waiting_since = now

    def failed(self, error: CallFailed, now: float, least_pause: float = 0.0) -> None:
        """Send the parcels of the failed call again later, unless the server can never accept them."""
        group = self._groups[0] if self._groups else []
        self._groups = []
        self._disconnected()
        if error.code is Code.INVALID_ARGUMENT:
            for entry in group:
                self.outbox.refuse(*entry.parcel.key, "invalid_argument")
            self.refusals.append(str(error))
        self._waiting_since = now
        asked = max(least_pause, asked_pause(error.failure.retry_after_ms))
        self._asked_until, self._not_before = now + asked, now + self._backoff.failed(asked)

    def _is_due(self) -> bool:
        pace = self._pace
        return (
            self._flushing
            or self.outbox.backlog_bytes >= pace.eager_bytes
            or (pace.episodes is not None and self._ended >= pace.episodes)
        )

    def _disconnected(self) -> None:
        self.outbox.disconnected()
        self._settling = {}

    def _settle_packs(self, entries: Sequence[_Entry], reply: training_pb2.PushReply) -> None:
        """Settle the packs of which every segment is stored or refused by now."""
        for entry in entries:
            parcel, known = entry.parcel, self._settling.setdefault(entry.parcel.key, _Settling())
            for part in reply.acknowledged:
                known.stored.update(_common(entry.sequences, part.first, part.last))
            for refusal in reply.refused:
                last = refusal.sequence + max(1, refusal.count) - 1
                if common := _common(entry.sequences, refusal.sequence, last):
                    known.refused |= dict.fromkeys(common, _reason(refusal.reason))
                    self.refusals.append(refusal.message)
            if len(known.stored | known.refused.keys()) == parcel.segments:
                del self._settling[parcel.key]
                refused = {number: why for number, why in known.refused.items() if number not in known.stored}
                if self.outbox.settle_pack(*parcel.key, refused) is not None:
                    self.acknowledged += len(known.stored)

    def _grouped(self, parcels: Sequence[Parcel], session: DeliverySession) -> list[list[_Entry]]:
        groups: list[list[_Entry]] = []
        free = 0
        largest = session.max_message_bytes - _MESSAGE_SLACK
        for parcel in parcels:
            for entry in self._entries(parcel, session, largest):
                size = _size(entry.body)
                last = groups[-1] if groups else []
                is_another = not last or _kind(last[0].parcel) != _kind(parcel)
                if is_another or size > free or len(last) >= session.max_push_segments:
                    last, free = [], largest
                    groups.append(last)
                last.append(entry)
                free -= size
        return groups

    def _entries(self, parcel: Parcel, session: DeliverySession, largest: int) -> Iterable[_Entry]:
        """How to send a parcel; nothing if it can never be sent."""
        body = parcel.payload[HASH_BYTES:]
        fits = _size(body) <= largest
        if fits and (parcel.segments == 1 or parcel.segments <= session.max_pack_segments):
            return [_Entry(parcel, parcel.sequences, body)]
        if parcel.segments == 1:
            self.outbox.refuse(*parcel.key, "too_large")
            return []
        try:
            alone = split_pack(body, parcel.segments)
        except ContractViolation as error:
            self.outbox.refuse(*parcel.key, "malformed")
            self.refusals.append(str(error))
            return []
        if max(map(_size, alone)) > largest:
            self.outbox.refuse(*parcel.key, "too_large")
            return []
        return [
            _Entry(parcel, range(number, number + 1), body)
            for number, body in zip(parcel.sequences, alone, strict=True)
        ]


def _size(body: bytes) -> int:
    """Bytes that a segment counts as in a request."""
    return len(body) + HASH_BYTES + _PER_SEGMENT


def _common(sequences: range, first: int, last: int) -> range:
    """Those of some numbers that are also in a range from outside, both ends included, which is never expanded."""
    return range(max(sequences.start, first), min(sequences.stop, last + 1))


def _kind(parcel: Parcel) -> tuple[int, bytes]:
    return parcel.epoch, parcel.payload[:HASH_BYTES]


def _reason(number: int) -> str:
    try:
        return RefusalReason(number).name.lower()
    except ValueError:
        return "refused"
