"""Packs in an outbox, and their numbers in the set of what is known."""

from __future__ import annotations

import random
from pathlib import Path

from rl4sys.records import Deduplication, DiskOutbox, Outbox, OutboxLimits, Overflow


def test_a_pack_takes_the_numbers_of_its_segments() -> None:
    outbox = Outbox(1)
    outbox.offer(b"one")
    outbox.offer(b"ten", 10)
    assert [parcel.sequence for parcel in (*outbox.unsettled(), outbox.offer(b"last").parcel) if parcel] == [0, 1, 11]
    assert (outbox.backlog, outbox.backlog_segments) == (3, 12)


def test_a_pack_is_settled_once_all_its_segments_are_acknowledged() -> None:
    outbox = Outbox(1)
    outbox.offer(b"ten", 10)
    outbox.take(100)
    assert outbox.acknowledge(1, range(9)) == []
    assert [parcel.segments for parcel in outbox.acknowledge(1, range(50))] == [10]
    assert (outbox.backlog, outbox.backlog_segments, outbox.backlog_bytes) == (0, 0, 0)


def test_drops_count_segments() -> None:
    outbox = Outbox(1, OutboxLimits(200, Overflow.DROP_OLDEST))
    outbox.offer(bytes(30), 10)
    outbox.offer(bytes(60), 3)
    outbox.offer(bytes(100), 2)
    assert outbox.drops == {"overflow_oldest": 13}
    outbox.offer(bytes(500), 5)
    outbox.take(200)
    outbox.settle_pack(1, 13, {13: "not_finite"})
    assert outbox.drops == {"overflow_oldest": 13, "too_large": 5, "not_finite": 1}
    assert outbox.backlog_segments == 0


def test_packs_survive_on_the_disk_with_their_numbers(tmp_path: Path) -> None:
    first = DiskOutbox(tmp_path, 1)
    first.offer(b"pack", 10)
    first.offer(b"alone")
    first.offer(b"other", 5)
    first.take(100)
    first.acknowledge(1, range(11))
    first.close()
    second = DiskOutbox(tmp_path, 2)
    (parcel,) = second.unsettled()
    assert (parcel.key, parcel.payload, parcel.segments) == ((1, 11), b"other", 5)
    second.settle_pack(1, 11, {})
    second.close()
    assert DiskOutbox(tmp_path, 3).unsettled() == []


def test_ranges_of_numbers_are_known_like_single_ones() -> None:
    rng = random.Random(0)
    ranges, alone = Deduplication(), Deduplication()
    for _ in range(500):
        first = rng.choice([rng.randrange(300), 10 * rng.randrange(40)])
        numbers = range(first, first + rng.randrange(1, 12))
        known = sum(("a", 1, number) in alone for number in numbers)
        assert ranges.among("a", 1, numbers) == known
        if rng.random() < 0.6:
            assert ranges.add_all("a", 1, numbers) == sum(alone.add("a", 1, number) for number in numbers)
        assert ranges.state() == alone.state()
