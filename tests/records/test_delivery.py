from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.records.delivery import Delivery
from tests.storms import scaled

from rl4sys.records import Outbox, OutboxLimits


@pytest.mark.parametrize("block", range(5))
def test_no_seed_of_failing_networks_machines_and_disks_loses_or_repeats_anything(
    block: int, tally: Callable[[str, int], None]
) -> None:
    seeds = range(block, scaled(500, 20_000), 5)
    tally("seeded simulations of the disk outbox", len(seeds))
    for seed in seeds:
        try:
            Delivery(seed).run(steps=150)
        except BaseException as error:
            error.add_note(f"Replay with Delivery({seed}).run(steps=150).")
            raise


def test_without_failures_everything_arrives_in_order() -> None:
    box = Outbox(1, OutboxLimits(100_000, window=5))
    arrived: list[int] = []
    for number in range(200):
        box.offer(bytes([number]))
        if number % 3 == 0:
            for parcel in box.take(4):
                arrived.append(parcel.payload[0])
                box.acknowledge(parcel.epoch, range(parcel.sequence, parcel.sequence + 1))
    while parcels := box.take(4):
        arrived += [parcel.payload[0] for parcel in parcels]
        box.disconnected()
        for parcel in parcels:
            box.acknowledge(1, range(parcel.sequence, parcel.sequence + 1))
    assert arrived == list(range(200))
