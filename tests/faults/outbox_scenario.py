"""A disk outbox that is always nearly full, so that it evicts, rewrites and prunes."""

from __future__ import annotations

import itertools
from pathlib import Path

from tests.faults.service_scenario import Told

from rl4sys.records import DiskOutbox, OutboxLimits, Overflow, fresh_epoch
from rl4sys.records.outbox import PARCEL_OVERHEAD

LIMITS = OutboxLimits(12 * (PARCEL_OVERHEAD + 100), Overflow.DROP_OLDEST, window=4)
FILE_BYTES = 500
PARCELS = 120


def live(place: Path) -> None:
    """Offer and settle: every fourth parcel is never answered, so that old parcels have to be rewritten."""
    told = Told(place)
    box = DiskOutbox(place / "outbox", fresh_epoch(), LIMITS, file_bytes=FILE_BYTES)
    names: dict[tuple[int, int], int] = {parcel.key: number_of(parcel.payload) for parcel in box.unsettled()}
    for number in range(max(told.all("begun"), default=-1) + 1, PARCELS):
        told.say("begun", number)
        offer = box.offer(b"%06d" % number + bytes(94))
        assert offer.parcel is not None
        names[offer.parcel.key] = number
        for parcel in offer.evicted:
            told.say("settled", names[parcel.key])
        told.say("accepted", number)
        for parcel in box.take(1000):
            if names[parcel.key] % 4 and number_of(parcel.payload) > 2:
                told.say("settling", names[parcel.key])
                box.acknowledge(parcel.epoch, range(parcel.sequence, parcel.sequence + 1))
                told.say("settled", names[parcel.key])
        box.disconnected()
    box.close()


def recover(place: Path) -> None:
    """Accepted parcels that were not settled are there, once and in order; settled ones are not."""
    told = Told(place)
    box = DiskOutbox(place / "outbox", fresh_epoch(), LIMITS, file_bytes=FILE_BYTES)
    there = [number_of(parcel.payload) for parcel in box.unsettled()]
    begun, accepted = told.all("begun"), told.all("accepted")
    assert len(there) == len(set(there)), f"twice: {there}"
    assert not told.all("settled") & set(there), f"settled and sent again: {told.all('settled') & set(there)}"
    # The last offer may have evicted the oldest, and the last settlement may or may not have been written.
    uncertain = told.all("settling") | (_evictable(accepted - told.all("settled")) if begun - accepted else set())
    assert accepted - told.all("settled") - uncertain <= set(there)
    assert set(there) <= begun
    box.close()
    live(place)


def _evictable(waiting: set[int]) -> set[int]:
    return set(itertools.islice(sorted(waiting), 2))


def number_of(payload: bytes) -> int:
    return int(payload[:6])
