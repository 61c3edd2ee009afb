"""A client with a disk outbox and a server with a log, with failures between them drawn from a seed."""

from __future__ import annotations

import errno
import random
from collections import Counter
from collections.abc import Callable

from tests.records.logs import HERE
from tests.records.simulated_disk import Crashed, SimulatedDisk

from rl4sys.records import (
    Deduplication,
    DiskOutbox,
    Durability,
    LogBroken,
    OfferOutcome,
    OutboxLimits,
    Overflow,
    Parcel,
)
from rl4sys.records.outbox import PARCEL_OVERHEAD

CAPACITY = 1500
LARGEST = 370
WINDOW = 4
FILE_BYTES = 500

Key = tuple[int, int]


class Delivery:
    """Takes random steps, checks the invariants after each, and in the end stops all failures."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.overflow = self.rng.choice(list(Overflow))
        self.durability = self.rng.choice([Durability.FSYNC, Durability.OS])
        self.capacity = CAPACITY
        self.accepted: set[Key] = set()
        self.dropped: set[Key] = set()
        self.epochs = 0
        self.expected_drops: Counter[str] = Counter()
        self.start(SimulatedDisk())
        self.to_server: list[Parcel] = []
        self.to_client: list[tuple[Key, bool]] = []
        self.server_log: list[Parcel] = []
        self.seen = Deduplication()

    def start(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.epochs += 1
        limits = OutboxLimits(CAPACITY, self.overflow, WINDOW)
        self.box = DiskOutbox(
            HERE, self.epochs, limits, durability=self.durability, file_bytes=FILE_BYTES, files=self.disk
        )
        self.expected_drops.clear()

    def run(self, steps: int) -> None:
        actions = [self.offer] * 6 + [self.send] * 4 + [self.receive] * 6 + [self.hear] * 6
        actions += [self.break_connection, self.start_again, self.crash_server, self.fill_or_free_disk]
        for _ in range(steps):
            self.attempt(self.rng.choice(actions))
            self.check()
        self.disk.faults = {}
        self.heal()

    def attempt(self, action: Callable[[], None]) -> None:
        """In one of ten actions the machine stops, or the disk fails, at some call in the middle."""
        fault = self.rng.choice([None, errno.EIO])
        self.disk.faults = {self.disk.calls + self.rng.randrange(6): fault} if self.rng.random() < 0.1 else {}
        unsettled = {parcel.key for parcel in self.box.unsettled()}
        try:
            action()
        except (Crashed, LogBroken, OSError):
            self.disk.faults = {}
            self.start_again()
            # The crash may come between writing a new parcel and noting the evicted one: then both are there.
            newcomer = LARGEST if action == self.offer and self.overflow is Overflow.DROP_OLDEST else 0
            assert self.box.backlog_bytes <= self.capacity + newcomer
            self.capacity = max(CAPACITY, self.box.backlog_bytes)
            lost = unsettled - {parcel.key for parcel in self.box.unsettled()}
            if action == self.offer and lost:
                # They were evicted last, so the new parcel must be there.
                assert self.overflow is Overflow.DROP_OLDEST
                assert self.box.unsettled()[-1].epoch == self.epochs - 1
                self.dropped |= lost

    def offer(self) -> None:
        poison = self.rng.random() < 0.1
        payload = (b"poison" if poison else b"sound") + bytes(self.rng.randrange(LARGEST - PARCEL_OVERHEAD - 6))
        offer = self.box.offer(payload)
        self.dropped |= {parcel.key for parcel in offer.evicted}
        self.expected_drops["all"] += len(offer.evicted) + (offer.outcome is OfferOutcome.DROPPED)
        if offer.parcel is not None:
            self.accepted.add(offer.parcel.key)

    def send(self) -> None:
        for parcel in self.box.take(limit_bytes=400):
            copies = self.rng.choice([0, 1, 1, 1, 2])
            self.to_server += [parcel] * copies

    def receive(self) -> None:
        """The server receives any message: this choice models delay and reordering."""
        if self.to_server:
            parcel = self.to_server.pop(self.rng.randrange(len(self.to_server)))
            self.serve(parcel)

    def serve(self, parcel: Parcel) -> None:
        sound = parcel.payload.startswith(b"sound")
        if sound and self.seen.add("client", *parcel.key):
            self.server_log.append(parcel)
        self.to_client += [(parcel.key, sound)] * self.rng.choice([0, 1, 1, 2])

    def hear(self) -> None:
        if self.to_client:
            (epoch, sequence), sound = self.to_client.pop(self.rng.randrange(len(self.to_client)))
            if sound:
                self.box.acknowledge(epoch, range(sequence, sequence + 1))
                return
            self.dropped.add((epoch, sequence))
            if self.box.refuse(epoch, sequence, "refused") is not None:
                self.expected_drops["all"] += 1

    def break_connection(self) -> None:
        self.to_client.clear()
        self.box.disconnected()

    def start_again(self) -> None:
        """After a kill, or after a power cut if that must be survived."""
        if self.durability is Durability.FSYNC and self.rng.random() < 0.5:
            self.start(self.disk.rebooted(lambda: self.rng.random() < 0.5))
        else:
            self.start(self.disk.killed())

    def crash_server(self) -> None:
        """Its memory is a fold over its log."""
        self.seen = Deduplication()
        assert all(self.seen.add("client", *parcel.key) for parcel in self.server_log)

    def fill_or_free_disk(self) -> None:
        self.disk.full = not self.disk.full

    def check(self) -> None:
        assert self.box.backlog_bytes <= self.capacity
        assert self.box.in_flight <= WINDOW
        assert self.box.disk_bytes <= 2 * self.capacity + 5 * FILE_BYTES
        assert sum(self.box.drops.values()) == self.expected_drops["all"]

    def heal(self) -> None:
        """Nothing fails any more: everything accepted must arrive once, unless it was counted as dropped."""
        self.disk.full = False
        for _ in range(2000):
            if not (self.box.backlog or self.to_server):
                break
            if not self.to_server and not self.to_client:
                self.box.disconnected()
            self.to_server += self.box.take(limit_bytes=400)
            while self.to_server:
                self.receive()
            while self.to_client:
                self.hear()
        delivered = [parcel.key for parcel in self.server_log]
        assert self.box.backlog == 0
        assert len(delivered) == len(set(delivered))
        assert self.accepted <= set(delivered) | self.dropped
        assert not [parcel for parcel in self.server_log if parcel.payload.startswith(b"poison")]
