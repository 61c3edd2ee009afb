from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.records.logs import HERE
from tests.records.simulated_disk import SimulatedDisk, keep_nothing

from rl4sys.records import (
    DiskOutbox,
    Durability,
    LogBroken,
    OfferOutcome,
    OutboxLimits,
    Overflow,
    RecordLog,
    RecordsDamaged,
    fresh_epoch,
)
from rl4sys.records.outbox import PARCEL_OVERHEAD


def test_unacknowledged_parcels_of_earlier_starts_are_sent_first_with_their_identities(tmp_path: Path) -> None:
    for epoch in (30, 10, 20):
        box = DiskOutbox(tmp_path, epoch)
        box.offer(f"one of {epoch}".encode())
        box.offer(f"two of {epoch}".encode())
        box.acknowledge(epoch, range(1))
        box.close()
    box = DiskOutbox(tmp_path, 40)
    box.offer(b"new")
    assert [parcel.key for parcel in box.take(1000)] == [(30, 1), (10, 1), (20, 1), (40, 0)]
    box.close()


def test_evicted_and_refused_parcels_do_not_come_back(tmp_path: Path) -> None:
    limits = OutboxLimits(2 * (PARCEL_OVERHEAD + 1), Overflow.DROP_OLDEST)
    box = DiskOutbox(tmp_path, 1, limits)
    for payload in (b"a", b"b", b"c"):
        box.offer(payload)
    box.refuse(1, 2, "poison")
    assert box.drops == {"overflow_oldest": 1, "poison": 1}
    box.close()
    assert [parcel.payload for parcel in DiskOutbox(tmp_path, 2, limits).take(1000)] == [b"b"]


def test_one_unacknowledged_parcel_does_not_keep_old_files() -> None:
    disk = SimulatedDisk()
    box = DiskOutbox(HERE, 1, OutboxLimits(10_000), file_bytes=2000, files=disk)
    box.offer(b"stuck")
    for sequence in range(1, 1000):
        box.offer(b"x" * 100)
        box.acknowledge(1, range(sequence, sequence + 1))
        assert box.disk_bytes < 2 * 10_000 + 4 * 2000
    after = DiskOutbox(HERE, 2, files=disk.killed())
    assert [parcel.payload for parcel in after.take(1000)] == [b"stuck"]


def test_an_empty_outbox_keeps_one_small_file() -> None:
    box = DiskOutbox(HERE, 1, file_bytes=1000, files=SimulatedDisk())
    for sequence in range(500):
        box.offer(b"x" * 100)
        box.acknowledge(1, range(sequence, sequence + 1))
    assert box.disk_bytes < 2500


def test_on_a_full_disk_parcels_are_dropped_and_counted_until_there_is_space() -> None:
    disk = SimulatedDisk()
    box = DiskOutbox(HERE, 1, files=disk)
    box.offer(b"before")
    disk.full = True
    assert box.offer(b"lost").outcome is OfferOutcome.DROPPED
    box.acknowledge(1, range(1))
    disk.full = False
    assert box.offer(b"after").outcome is OfferOutcome.ACCEPTED
    assert box.drops == {"disk_full": 1}
    assert [parcel.payload for parcel in box.take(1000)] == [b"after"]


def test_with_a_broken_disk_nothing_is_accepted_and_earlier_parcels_can_be_delivered() -> None:
    disk = SimulatedDisk()
    box = DiskOutbox(HERE, 1, durability=Durability.FSYNC, files=disk)
    box.offer(b"before")
    disk.faults = {disk.calls: errno.EIO}
    with pytest.raises(LogBroken):
        box.offer(b"lost")
    assert box.broken is not None
    assert box.drops == {"disk_failed": 1}
    assert [parcel.payload for parcel in box.take(1000)] == [b"before"]
    assert len(box.acknowledge(1, range(1))) == 1


def test_with_fsync_an_accepted_parcel_survives_a_power_cut() -> None:
    disk = SimulatedDisk()
    box = DiskOutbox(HERE, 1, durability=Durability.FSYNC, files=disk)
    assert box.offer(b"safe").outcome is OfferOutcome.ACCEPTED
    after = DiskOutbox(HERE, 2, files=disk.rebooted(keep_nothing))
    assert [parcel.payload for parcel in after.take(1000)] == [b"safe"]


def test_a_log_that_is_not_an_outbox_is_refused(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    log.append([b"something else"])
    log.close()
    with pytest.raises(RecordsDamaged, match="neither a parcel nor a settlement"):
        DiskOutbox(tmp_path, 1)


def test_fresh_epochs_differ_and_fit_a_signed_64_bit_integer() -> None:
    epochs = {fresh_epoch() for _ in range(1000)}
    assert len(epochs) == 1000
    assert max(epochs) < 2**63
