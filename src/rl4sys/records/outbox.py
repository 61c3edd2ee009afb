"""The outbox of a client: a bounded queue that resends until acknowledged. No I/O, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from types import MappingProxyType
from typing import NamedTuple

PARCEL_OVERHEAD = 64
"""Bytes of a parcel beyond its payload, on disk and roughly in memory: this bounds tiny parcels, too."""


class Overflow(StrEnum):
    """What happens to a payload that does not fit."""

    BLOCK = "block"
    """The caller waits until it fits."""
    DROP_OLDEST = "drop_oldest"
    """The oldest parcels that are not in flight are dropped."""
    DROP_NEWEST = "drop_newest"
    """The payload itself is dropped."""


@dataclass(frozen=True, slots=True)
class OutboxLimits:
    """How much a client keeps, and how much of it may be in flight."""

    capacity_bytes: int = 64 << 20
    """Payloads plus `PARCEL_OVERHEAD` each. More bridges a longer outage of the server, and takes memory and disk."""
    overflow: Overflow = Overflow.DROP_OLDEST
    window: int = 64
    """Parcels sent and not yet acknowledged. More hides latency better; all are sent again after a lost connection."""


class Parcel(NamedTuple):
    """A payload with its permanent identity: (epoch, sequence) within its client.

    A pack of segments has their sequence numbers, of which `sequence` is the first, and is settled as a whole.
    """

    epoch: int
    sequence: int
    payload: bytes
    segments: int = 1
    """How many segments it holds."""

    @property
    def key(self) -> tuple[int, int]:
        """What an acknowledgement refers to."""
        return self.epoch, self.sequence

    @property
    def sequences(self) -> range:
        """The numbers of its segments."""
        return range(self.sequence, self.sequence + self.segments)

    @property
    def cost(self) -> int:
        """Bytes that it counts as."""
        return PARCEL_OVERHEAD + len(self.payload)


class OfferOutcome(Enum):
    """What became of an offered payload."""

    ACCEPTED = auto()
    DROPPED = auto()
    """It was counted in `drops` and will not be sent."""
    FULL = auto()
    """Nothing changed: offer it again when a parcel was settled."""


class Offer(NamedTuple):
    """The result of offering a payload."""

    outcome: OfferOutcome
    parcel: Parcel | None = None
    evicted: tuple[Parcel, ...] = ()
    """Older parcels that were dropped for it."""


class Outbox:
    """A pure state machine: a parcel waits, is in flight, and is settled (acknowledged or dropped) once.

    Parcels are sent in the order they came. `epoch` must never have been used by this client before: draw it at random.
    `backlog` are parcels of earlier epochs, sent again under their own identities.
    """

    def __init__(self, epoch: int, limits: OutboxLimits | None = None, backlog: Iterable[Parcel] = ()) -> None:
        self.epoch = epoch
        self.limits = limits or OutboxLimits()
        self._waiting: dict[tuple[int, int], Parcel] = {parcel.key: parcel for parcel in backlog}
        if any(parcel.epoch == epoch for parcel in self._waiting.values()):
            raise ValueError(f"Epoch {epoch} has parcels from an earlier start; draw a fresh one at every start.")
        self._in_flight: dict[tuple[int, int], Parcel] = {}
        self._bytes = sum(parcel.cost for parcel in self._waiting.values())
        self._segments = sum(parcel.segments for parcel in self._waiting.values())
        self._in_flight_bytes = 0
        self._next_sequence = 0
        self._drops: Counter[str] = Counter()

    @property
    def backlog(self) -> int:
        """Parcels not yet settled, in flight or not."""
        return len(self._waiting) + len(self._in_flight)

    @property
    def backlog_segments(self) -> int:
        """The segments in them."""
        return self._segments

    @property
    def backlog_bytes(self) -> int:
        """Their cost in bytes; at most the capacity, unless an earlier start left more.

        It does if its capacity was larger, or if it was killed between adding a parcel and noting the evicted ones.
        """
        return self._bytes

    @property
    def in_flight(self) -> int:
        """Parcels sent and not yet settled."""
        return len(self._in_flight)

    @property
    def drops(self) -> Mapping[str, int]:
        """Segments that will never be sent, by reason, since this outbox was made."""
        return MappingProxyType(self._drops)

    def unsettled(self) -> list[Parcel]:
        """Every parcel not yet settled, oldest first."""
        return [*self._in_flight.values(), *self._waiting.values()]

    def offer(self, payload: bytes, count: int = 1) -> Offer:
        """Add a payload of so many segments if it fits, or if others can be dropped for it."""
        parcel = Parcel(self.epoch, self._next_sequence, payload, count)
        if parcel.cost > self.limits.capacity_bytes:
            return self._drop_new("too_large", count)
        evicted: tuple[Parcel, ...] = ()
        if self._bytes + parcel.cost > self.limits.capacity_bytes:
            if self.limits.overflow is Overflow.BLOCK:
                return Offer(OfferOutcome.FULL)
            # Parcels in flight stay, as they may have arrived; if they alone fill the outbox, evicting would not help.
            if (
                self.limits.overflow is Overflow.DROP_NEWEST
                or self._in_flight_bytes + parcel.cost > self.limits.capacity_bytes
            ):
                return self._drop_new("overflow_newest", count)
            evicted = self._evict(parcel.cost)
        self._next_sequence += count
        self._waiting[parcel.key] = parcel
        self._bytes += parcel.cost
        self._segments += count
        return Offer(OfferOutcome.ACCEPTED, parcel, evicted)

    def take(self, limit_bytes: int) -> list[Parcel]:
        """The next parcels to send, now in flight: in order, within the window, at least one if the window allows."""
        taken: list[Parcel] = []
        length = 0
        while self._waiting and len(self._in_flight) < self.limits.window:
            parcel = next(iter(self._waiting.values()))
            if taken and length + len(parcel.payload) > limit_bytes:
                break
            del self._waiting[parcel.key]
            self._in_flight[parcel.key] = parcel
            self._in_flight_bytes += parcel.cost
            length += len(parcel.payload)
            taken.append(parcel)
        return taken

    def acknowledge(self, epoch: int, sequences: range) -> list[Parcel]:
        """The server has stored these permanently; returns those that were still here. Repeats are harmless.

        A pack is settled once all its segments are among them.
        """
        found = self.unsettled() if len(sequences) > self.backlog else map(self._held, self._keys(epoch, sequences))
        settled = [
            parcel
            for parcel in found
            if parcel is not None
            and parcel.epoch == epoch
            and sequences.start <= parcel.sequence
            and parcel.sequences.stop <= sequences.stop
        ]
        for parcel in settled:
            self._settle(parcel.key)
        return settled

    def refuse(self, epoch: int, sequence: int, reason: str) -> Parcel | None:
        """The server, or this client's disk, will never store this one: drop it, counted under the reason.

        A pack is named by its first number, and dropped as a whole.
        """
        parcel = self._settle((epoch, sequence))
        if parcel is not None:
            self._drops[reason] += parcel.segments
        return parcel

    def settle_pack(self, epoch: int, sequence: int, refused: Mapping[int, str]) -> Parcel | None:
        """The server has stored a pack but for these numbers, which it will never store: count them by reason."""
        parcel = self._settle((epoch, sequence))
        if parcel is not None:
            self._drops.update(reason for number, reason in refused.items() if number in parcel.sequences)
        return parcel

    def disconnected(self) -> None:
        """Parcels in flight may be lost: send them again, first and in order."""
        self._waiting = self._in_flight | self._waiting
        self._in_flight = {}
        self._in_flight_bytes = 0

    def _held(self, key: tuple[int, int]) -> Parcel | None:
        return self._in_flight.get(key) or self._waiting.get(key)

    def _keys(self, epoch: int, sequences: range) -> Iterator[tuple[int, int]]:
        return ((epoch, sequence) for sequence in sequences)

    def _settle(self, key: tuple[int, int]) -> Parcel | None:
        parcel = self._in_flight.pop(key, None)
        if parcel is not None:
            self._in_flight_bytes -= parcel.cost
        else:
            parcel = self._waiting.pop(key, None)
        if parcel is not None:
            self._bytes -= parcel.cost
            self._segments -= parcel.segments
        return parcel

    def _evict(self, cost: int) -> tuple[Parcel, ...]:
        evicted: list[Parcel] = []
        while self._waiting and self._bytes + cost > self.limits.capacity_bytes:
            oldest = self._waiting.pop(next(iter(self._waiting)))
            self._bytes -= oldest.cost
            self._segments -= oldest.segments
            evicted.append(oldest)
        self._drops["overflow_oldest"] += sum(parcel.segments for parcel in evicted)
        return tuple(evicted)

    def _drop_new(self, reason: str, count: int) -> Offer:
        self._drops[reason] += count
        return Offer(OfferOutcome.DROPPED)
