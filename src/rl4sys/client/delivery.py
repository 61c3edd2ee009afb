"""Decides what to send next and what a reply means. It has no thread, clock or network, so simulations can drive it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rl4sys.client.retries import Backoff, asked_pause
from rl4sys.records import Offer, Parcel
from rl4sys.wire import RefusalReason, covered
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
    def backlog_bytes(self) -> int:
        """Their size against the capacity."""

    @property
    def in_flight(self) -> int:
        """Parcels sent and not yet settled."""

    @property
    def drops(self) -> Mapping[str, int]:
        """Payloads that will never be sent, by reason."""

    def offer(self, payload: bytes) -> Offer:
        """Add a payload."""

    def take(self, limit_bytes: int) -> list[Parcel]:
        """The next parcels to send."""

    def acknowledge(self, epoch: int, sequences: range) -> list[Parcel]:
        """Note that the server has these."""

    def refuse(self, epoch: int, sequence: int, reason: str) -> Parcel | None:
        """Note that the server refuses this one permanently."""

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
        self._groups: list[list[Parcel]] = []
        self._not_before = 0.0
        self._asked_until = 0.0
        """The end of the pause that the server asked for; `_not_before` may be later, after a failed call."""
        self._waiting_since: float | None = None if outbox.backlog == 0 else 0.0
        self._ended = 0

    def offered(self, now: float, *, episode_ended: bool) -> None:
        """Note that the outbox has a new parcel."""
        if self._waiting_since is None:
            self._waiting_since = now
        self._ended += episode_ended

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
        return training_pb2.PushRequest(
            session=session.id,
            epoch=group[0].epoch,
            schema_hash=group[0].payload[:HASH_BYTES],
            segments=[
                training_pb2.PushedSegment(sequence=parcel.sequence, segment=parcel.payload[HASH_BYTES:])
                for parcel in group
            ],
        )

    def answered(self, reply: training_pb2.PushReply, now: float) -> None:
        """Settle the parcels that the reply mentions; the others will be sent again."""
        group = self._groups.pop(0)
        epoch, sequences = group[0].epoch, [parcel.sequence for parcel in group]
        for sequence in covered(reply.acknowledged, sequences):
            self.acknowledged += len(self.outbox.acknowledge(epoch, range(sequence, sequence + 1)))
        for refusal in reply.refused:
            if refusal.sequence in sequences and self.outbox.refuse(epoch, refusal.sequence, _reason(refusal.reason)):
                self.refusals.append(refusal.message)
        self._backoff.succeeded()
        self._not_before = self._asked_until = now + asked_pause(reply.retry_after_ms)
        if not self._groups and self.outbox.in_flight:
            self.outbox.disconnected()
            # A server that leaves parcels out without asking for a pause must not be called in a tight loop.
            if reply.retry_after_ms == 0:
                self._not_before = now + self._backoff.failed()
        if self.outbox.backlog and self._waiting_since is None:
            self._waiting_since = now

    def failed(self, error: CallFailed, now: float, least_pause: float = 0.0) -> None:
        """Send the parcels of the failed call again later, unless the server can never accept them."""
        group = self._groups[0] if self._groups else []
        self._groups = []
        self.outbox.disconnected()
        if error.code is Code.INVALID_ARGUMENT:
            for parcel in group:
                self.outbox.refuse(*parcel.key, "invalid_argument")
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

    def _grouped(self, parcels: Sequence[Parcel], session: DeliverySession) -> list[list[Parcel]]:
        groups: list[list[Parcel]] = []
        free = 0
        largest = session.max_message_bytes - _MESSAGE_SLACK
        for parcel in parcels:
            size = len(parcel.payload) + _PER_SEGMENT
            if size > largest:
                self.outbox.refuse(*parcel.key, "too_large")
                continue
            last = groups[-1] if groups else []
            if not last or _kind(last[0]) != _kind(parcel) or size > free or len(last) >= session.max_push_segments:
                last, free = [], largest
                groups.append(last)
            last.append(parcel)
            free -= size
        return groups


def _kind(parcel: Parcel) -> tuple[int, bytes]:
    return parcel.epoch, parcel.payload[:HASH_BYTES]


def _reason(number: int) -> str:
    try:
        return RefusalReason(number).name.lower()
    except ValueError:
        return "refused"
