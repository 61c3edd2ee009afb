from __future__ import annotations

import pytest

from rl4sys.records import OfferOutcome, Outbox, OutboxLimits, Overflow, Parcel
from rl4sys.records.outbox import PARCEL_OVERHEAD


def outbox(overflow: Overflow = Overflow.BLOCK, room: int = 3, window: int = 8) -> Outbox:
    """Limits for a number of parcels of ten bytes."""
    return Outbox(7, OutboxLimits(room * (10 + PARCEL_OVERHEAD), overflow, window))


def offer(box: Outbox, count: int) -> list[OfferOutcome]:
    return [box.offer(bytes([number]) * 10).outcome for number in range(count)]


def sequences(parcels: list[Parcel]) -> list[int]:
    return [parcel.sequence for parcel in parcels]


def test_parcels_are_sent_in_order_and_kept_until_acknowledged() -> None:
    box = outbox()
    offer(box, 3)
    assert sequences(box.take(1000)) == [0, 1, 2]
    assert box.take(1000) == []
    assert sequences(box.acknowledge(7, range(2))) == [0, 1]
    assert (box.backlog, box.in_flight) == (1, 1)


def test_after_a_disconnect_parcels_in_flight_are_sent_first() -> None:
    box = outbox(window=2)
    offer(box, 3)
    assert sequences(box.take(1000)) == [0, 1]
    box.disconnected()
    assert sequences(box.take(1000)) == [0, 1]
    box.acknowledge(7, range(2))
    assert sequences(box.take(1000)) == [2]


def test_a_batch_has_no_more_bytes_than_asked_but_at_least_one_parcel() -> None:
    box = outbox()
    offer(box, 3)
    assert sequences(box.take(25)) == [0, 1]
    assert sequences(box.take(1)) == [2]


def test_late_repeated_foreign_and_enormous_acknowledgements_are_harmless() -> None:
    box = outbox()
    offer(box, 3)
    box.take(1000)
    box.disconnected()
    assert sequences(box.acknowledge(7, range(1, 2))) == [1]
    assert box.acknowledge(7, range(1, 2)) == []
    assert box.acknowledge(8, range(2**62)) == []
    assert sequences(box.acknowledge(7, range(2**62))) == [0, 2]
    assert box.backlog_bytes == 0


def test_with_block_a_full_outbox_drops_nothing() -> None:
    box = outbox(Overflow.BLOCK)
    assert offer(box, 4) == [OfferOutcome.ACCEPTED] * 3 + [OfferOutcome.FULL]
    assert box.drops == {}
    box.acknowledge(7, range(1))
    assert box.offer(b"x" * 10).outcome is OfferOutcome.ACCEPTED


def test_drop_newest_keeps_old_parcels_and_counts_drops() -> None:
    box = outbox(Overflow.DROP_NEWEST)
    assert offer(box, 5) == [OfferOutcome.ACCEPTED] * 3 + [OfferOutcome.DROPPED] * 2
    assert box.drops == {"overflow_newest": 2}
    assert sequences(box.unsettled()) == [0, 1, 2]


def test_drop_oldest_keeps_new_parcels_and_counts_drops() -> None:
    box = outbox(Overflow.DROP_OLDEST)
    assert offer(box, 5) == [OfferOutcome.ACCEPTED] * 5
    assert box.drops == {"overflow_oldest": 2}
    assert sequences(box.unsettled()) == [2, 3, 4]


def test_drop_oldest_keeps_parcels_in_flight_and_evicts_none_in_vain() -> None:
    box = outbox(Overflow.DROP_OLDEST, window=2)
    offer(box, 3)
    box.take(1000)
    assert sequences(list(box.offer(b"x" * 10).evicted)) == [2]
    assert box.offer(b"x" * 90).outcome is OfferOutcome.DROPPED
    assert sequences(box.unsettled()) == [0, 1, 3]
    assert box.drops == {"overflow_oldest": 1, "overflow_newest": 1}


@pytest.mark.parametrize("overflow", Overflow)
def test_a_payload_larger_than_the_outbox_is_dropped(overflow: Overflow) -> None:
    box = outbox(overflow)
    assert box.offer(b"x" * 1000).outcome is OfferOutcome.DROPPED
    assert box.drops == {"too_large": 1}


def test_a_permanently_refused_parcel_is_dropped_and_counted_by_reason() -> None:
    box = outbox()
    offer(box, 2)
    box.take(1000)
    assert box.refuse(7, 0, "schema_mismatch") == Parcel(7, 0, bytes(10))
    assert box.refuse(7, 0, "schema_mismatch") is None
    assert box.drops == {"schema_mismatch": 1}
    assert sequences(box.unsettled()) == [1]


def test_an_epoch_is_never_used_twice() -> None:
    with pytest.raises(ValueError, match="draw a fresh one"):
        Outbox(7, backlog=[Parcel(7, 0, b"old")])
