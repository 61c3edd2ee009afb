"""The courier's core under every fault that a network has, without threads and without a clock."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from tests.storms import scaled

from rl4sys.client.delivery import HASH_BYTES, Delivery, DeliverySession, Pace
from rl4sys.records import Outbox, OutboxLimits, Overflow, Parcel
from rl4sys.wire import Failure, FailureReason, to_ranges
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2

Key = tuple[int, int]


@dataclass
class World:
    """What the server stored, with the checks that must always hold."""

    rng: random.Random
    stored: dict[Key, bytes] = field(default_factory=dict)
    refused: set[Key] = field(default_factory=set)
    settled: set[Key] = field(default_factory=set)
    """Parcels whose acknowledgement or refusal reached the client."""

    def push(self, request: training_pb2.PushRequest) -> training_pb2.PushReply:
        """Reply, or fail before or after storing; sometimes reply about parcels that were not sent."""
        kind = self.rng.random()
        if kind < 0.15:
            raise CallFailed(Code.UNAVAILABLE, "dropped")
        if kind < 0.2:
            raise CallFailed(Code.RESOURCE_EXHAUSTED, "full", Failure(FailureReason.INBOX_FULL, 200))
        keys = [(request.epoch, pushed.sequence) for pushed in request.segments]
        assert not self.settled & set(keys), "settled parcels are not sent again"
        reply = training_pb2.PushReply()
        acknowledged = []
        for key, pushed in zip(keys, request.segments, strict=True):
            assert self.stored.get(key, pushed.segment) == pushed.segment
            if key[1] % 17 == 3:
                self.refused.add(key)
                reply.refused.add(sequence=key[1], reason="REFUSAL_REASON_NOT_FINITE", message="no")
            elif self.rng.random() < 0.9:
                self.stored[key] = pushed.segment
                acknowledged.append(key)
        if kind < 0.35:
            raise CallFailed(Code.DEADLINE_EXCEEDED, "the answer was lost")
        reply.acknowledged.extend(to_ranges(sequence for _, sequence in acknowledged))
        if kind < 0.45:
            reply.acknowledged.add(first=1 << 40, last=1 << 62)
            reply.refused.add(sequence=1 << 40, reason="REFUSAL_REASON_NOT_FINITE")
        self.settled |= set(acknowledged) | (self.refused & set(keys))
        return reply


def simulate(seed: int) -> tuple[World, Outbox, set[Key]]:
    rng = random.Random(seed)
    world = World(random.Random(seed + 1))
    limits = OutboxLimits(capacity_bytes=100_000, overflow=Overflow.BLOCK, window=rng.choice([1, 3, 64]))
    backlog = [Parcel(7, n, bytes([n % 2]) * HASH_BYTES + bytes([n])) for n in range(rng.randrange(4))]
    outbox = Outbox(1000 + seed, limits, backlog)
    delivery = Delivery(outbox, Pace(rng.choice([0.0, 0.5]), rng.choice([None, 2]), 50_000), random.Random(seed + 2))
    session = DeliverySession("s", "learner", 1 << 16, rng.choice([1, 2, 64]))
    offered = {parcel.key for parcel in backlog}
    now = 0.0
    for _ in range(400):
        now += rng.random() * 0.4
        if rng.random() < 0.4 and len(offered) < 60:
            parcel = outbox.offer(bytes([rng.randrange(2)]) * HASH_BYTES + rng.randbytes(rng.randrange(1, 40))).parcel
            assert parcel is not None
            offered.add(parcel.key)
            delivery.offered(now, ended=rng.random() < 0.5)
        if delivery.wait(now) == 0.0:
            deliver(delivery, world, session, now)
    for _ in range(3_000):
        now += 1.0
        if delivery.wait(now) is None:
            break
        deliver(delivery, world, session, now)
    return world, outbox, offered


def deliver(delivery: Delivery, world: World, session: DeliverySession, now: float) -> None:
    request = delivery.request(session)
    if request is None:
        return
    try:
        reply = world.push(request)
    except CallFailed as error:
        delivery.failed(error, now)
    else:
        delivery.answered(reply, now)


@pytest.mark.parametrize("block", range(10))
def test_nothing_is_lost_and_no_settled_parcel_is_sent_again(block: int, tally: Callable[[str, int], None]) -> None:
    seeds = range(block, scaled(500, 20_000), 10)
    tally("seeded simulations of the courier's core", len(seeds))
    for each in seeds:
        world, outbox, offered = simulate(each)
        assert outbox.backlog == 0, f"seed {each}"
        assert world.stored.keys() | world.refused == offered, f"seed {each}"
        assert outbox.drops.get("not_finite", 0) == len(world.refused), f"seed {each}"


def test_a_request_has_one_epoch_and_one_schema() -> None:
    outbox = Outbox(9, backlog=[Parcel(1, 0, b"a" * 40), Parcel(1, 1, b"b" * 40), Parcel(2, 0, b"b" * 40)])
    delivery = Delivery(outbox, Pace(0.0, None, 1), random.Random(0))
    session = DeliverySession("s", "learner", 1 << 16, 64)
    found = []
    while (request := delivery.request(session)) is not None:
        found.append((request.epoch, request.schema_hash[:1], len(request.segments)))
        reply = training_pb2.PushReply(acknowledged=to_ranges(s.sequence for s in request.segments))
        delivery.answered(reply, 0.0)
    assert found == [(1, b"a", 1), (1, b"b", 1), (2, b"b", 1)]


def test_an_invalid_request_is_dropped_and_counted() -> None:
    outbox = Outbox(9, backlog=[Parcel(1, 0, b"a" * 40)])
    delivery = Delivery(outbox, Pace(0.0, None, 1), random.Random(0))
    assert delivery.request(DeliverySession("s", "learner", 1 << 16, 64)) is not None
    delivery.failed(CallFailed(Code.INVALID_ARGUMENT, "strange"), 0.0)
    assert (outbox.backlog, dict(outbox.drops)) == (0, {"invalid_argument": 1})


def test_a_segment_too_large_for_any_message_is_dropped_and_counted() -> None:
    outbox = Outbox(9, backlog=[Parcel(1, 0, b"a" * 70_000), Parcel(1, 1, b"a" * 40)])
    delivery = Delivery(outbox, Pace(0.0, None, 1), random.Random(0))
    request = delivery.request(DeliverySession("s", "learner", 1 << 16, 64))
    assert request is not None
    assert [pushed.sequence for pushed in request.segments] == [1]
    assert dict(outbox.drops) == {"too_large": 1}


def test_experience_is_batched_up_to_the_send_interval() -> None:
    outbox = Outbox(9)
    delivery = Delivery(outbox, Pace(interval=1.0, episodes=2, eager_bytes=1 << 20), random.Random(0))
    assert delivery.wait(5.0) is None
    outbox.offer(b"a" * 40)
    delivery.offered(5.0, ended=True)
    assert delivery.wait(5.25) == 0.75
    assert delivery.wait(6.0) == 0.0
    outbox.offer(b"a" * 40)
    delivery.offered(5.5, ended=True)
    assert delivery.wait(5.5) == 0.0
