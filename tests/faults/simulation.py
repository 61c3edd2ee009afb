"""The whole protocol without threads, clocks and sockets, with all its failures drawn from a seed.

`python -m tests.faults.simulation SEED` replays one.
"""

from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Callable

from tests.faults.simulated_server import POISON, WEIGHTS, Key, SimulatedServer, flip, weights
from tests.records.logs import HERE
from tests.records.simulated_disk import Crashed, SimulatedDisk

from rl4sys.client.delivery import HASH_BYTES, Delivery, DeliverySession, Pace
from rl4sys.records import DiskOutbox, Durability, LogBroken, OfferOutcome, OutboxLimits, Overflow, RecordsDamaged
from rl4sys.weights import Patch, PatchMismatch, apply_patch
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2

STEPS = 160
LIMITS = {"capacity_bytes": 2500, "window": 4}


class Simulation:
    """A client and a server, with a network that drops, repeats, reorders, delays and partitions."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.server = SimulatedServer(self.rng)
        self.overflow = self.rng.choice(list(Overflow))
        self.durability = self.rng.choice([Durability.FSYNC, Durability.OS])
        self.now, self.epoch, self.parted = 0.0, 0, False
        self.accepted: set[Key] = set()
        self.dropped: set[Key] = set()
        self.counted = 0
        self.requests: list[tuple[int, training_pb2.PushRequest]] = []
        self.patches: list[Patch] = []
        self.version: int | None = None
        self.weights = weights(0)
        self.calls = 0
        self.start_client(SimulatedDisk())

    def start_client(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.epoch += 1
        limits = OutboxLimits(LIMITS["capacity_bytes"], self.overflow, LIMITS["window"])
        self.box = DiskOutbox(HERE, self.epoch, limits, durability=self.durability, file_bytes=500, files=disk)
        self.delivery = Delivery(self.box, Pace(0.5, 2, 1000), random.Random(self.rng.random()))
        self.outstanding: int | None = None
        self.counted = 0

    def run(self) -> None:
        often = [self.offer] * 5 + [self.send] * 5 + [self.arrive] * 6 + [self.learn] * 2 + [self.pull, self.receive]
        seldom = [self.give_up, self.part_or_heal, self.client_dies, self.server_dies, self.fill_or_free, self.sleep]
        for _ in range(STEPS):
            self.now += self.rng.random() * 0.3
            self.attempt(self.rng.choice(often * 2 + seldom))
            self.check()
        self.heal()

    def attempt(self, action: Callable[[], None]) -> None:
        """At times a machine stops, or its disk fails, in the middle of a call."""
        for disk in (self.disk, self.server.disk):
            fault = self.rng.choice([None, 5])
            disk.faults = {disk.calls + self.rng.randrange(8): fault} if self.rng.random() < 0.04 else {}
        before = {parcel.key for parcel in self.box.unsettled()}
        try:
            action()
        except (Crashed, LogBroken, OSError):
            self.disk.faults, self.server.disk.faults = {}, {}
            if self.disk.crashed or self.box.broken is not None:
                self.client_dies()
                lost = before - {parcel.key for parcel in self.box.unsettled()}
                # Only the last offer may have evicted others, and only with that overflow policy.
                assert not lost or self.overflow is Overflow.DROP_OLDEST or action != self.offer
                self.dropped |= lost if action == self.offer else set()
            self.server_dies()
        self.disk.faults, self.server.disk.faults = {}, {}

    def offer(self) -> None:
        body = (POISON if self.rng.random() < 0.08 else b"sound") + self.rng.randbytes(self.rng.randrange(200))
        offer = self.box.offer(bytes([self.rng.randrange(2)]) * HASH_BYTES + body)
        self.counted += len(offer.evicted) + (offer.outcome is OfferOutcome.DROPPED)
        self.dropped |= {parcel.key for parcel in offer.evicted}
        if offer.parcel is not None:
            self.accepted.add(offer.parcel.key)
        if offer.outcome is not OfferOutcome.FULL:
            self.delivery.offered(self.now, ended=self.rng.random() < 0.5)

    def send(self) -> None:
        if self.outstanding is None and self.delivery.wait(self.now) == 0.0:
            request = self.delivery.request(DeliverySession("s", "l", 4096 + 700, 3))
            if request is not None:
                self.calls += 1
                self.outstanding = self.calls
                self.requests.append((self.calls, request))

    def arrive(self) -> None:
        """Any request that was ever sent may arrive now, and again later."""
        if self.parted or not self.requests:
            return
        place = self.rng.randrange(len(self.requests))
        call, request = self.requests[place]
        if self.rng.random() < 0.85:
            del self.requests[place]
        if self.rng.random() < 0.1:
            return
        error: CallFailed | None = None
        try:
            reply = self.server.push(request)
        except CallFailed as failure:
            error = failure
        if call != self.outstanding or self.rng.random() < 0.15:
            return
        self.outstanding = None
        if error is not None:
            self.delivery.failed(error, self.now)
            return
        poisoned = {(request.epoch, r.sequence) for r in reply.refused}
        self.counted += len(poisoned & {parcel.key for parcel in self.box.unsettled()})
        self.dropped |= poisoned
        self.delivery.answered(reply, self.now)

    def give_up(self) -> None:
        if self.outstanding is not None:
            self.outstanding = None
            code = self.rng.choice([Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED])
            self.delivery.failed(CallFailed(code, "no answer"), self.now)

    def learn(self) -> None:
        self.server.learn()

    def pull(self) -> None:
        if not self.parted:
            self.patches.append(self.server.patch(self.version))

    def receive(self) -> None:
        """Patches arrive in any order, some twice, some with a flipped bit."""
        if not self.patches:
            return
        patch = self.rng.choice(self.patches)
        if self.rng.random() < 0.8:
            self.patches.remove(patch)
        if self.rng.random() < 0.2 and patch.payload:
            payload = bytearray(patch.payload)
            payload[self.rng.randrange(len(payload))] ^= 1 << self.rng.randrange(8)
            patch = dataclasses.replace(patch, payload=bytes(payload))
        if patch.base not in (None, self.version) or patch.target < (self.version or 0):
            return
        try:
            self.weights, self.version = apply_patch(self.weights, patch, WEIGHTS), patch.target
        except PatchMismatch:
            self.version = None

    def part_or_heal(self) -> None:
        self.parted = not self.parted

    def sleep(self) -> None:
        """The clock jumps: the machine was suspended."""
        self.now += 10_000.0

    def fill_or_free(self) -> None:
        disk = self.rng.choice([self.disk, self.server.disk])
        disk.full = not disk.full

    def client_dies(self) -> None:
        """Stop by a kill, by a power cut if that must be survived, or by a kill and a flipped bit."""
        if self.durability is Durability.OS:
            self.start_client(self.disk.killed())
        elif self.rng.random() < 0.5:
            self.start_client(self.disk.rebooted(lambda: self.rng.random() < 0.5))
        else:
            before = {parcel.key for parcel in self.box.unsettled()} if self.box.broken is None else set()
            disk = self.disk.killed()
            undo = flip(disk, self.rng) if self.rng.random() < 0.3 and not self.disk.crashed else None
            try:
                self.start_client(disk)
                assert undo is None or before <= {parcel.key for parcel in self.box.unsettled()}
            except RecordsDamaged:
                assert undo is not None
                undo()
                self.start_client(self.disk.killed())

    def server_dies(self) -> None:
        self.server.crash(power=self.rng.random() < 0.5)
        if self.rng.random() < 0.5:
            self.give_up()

    def check(self) -> None:
        assert self.box.in_flight <= LIMITS["window"]
        assert sum(self.box.drops.values()) == self.counted, f"{dict(self.box.drops)}, and {self.counted} were seen"
        assert self.version is None or (self.weights == weights(self.version)).all()
        assert self.server.trained == [self.server.history[n] for n in range(self.server.position)]

    def heal(self) -> None:
        """Nothing fails any more: everything must arrive and be learned from once, in order."""
        self.disk.full = self.server.disk.full = self.parted = False
        for _ in range(3_000):
            if not self.box.backlog and not self.requests:
                break
            self.now += 4.0
            self.send()
            self.arrive()
            if self.rng.random() < 0.2:
                self.give_up()
        assert self.box.backlog == 0, "the client did not catch up"
        while self.server.position < self.server.log.committed:
            self.server.learn()
        trained = set(self.server.trained)
        assert len(self.server.trained) == len(trained), "trained twice"
        assert self.server.acknowledged <= trained, f"acknowledged and lost: {self.server.acknowledged - trained}"
        assert self.accepted <= trained | self.dropped, f"lost in silence: {self.accepted - trained - self.dropped}"
        self.patches = [self.server.patch(None)]
        while self.version != self.server.store.latest:
            self.patches.append(self.server.patch(None))
            self.receive()
        self.check()


def simulate(seed: int) -> Simulation:
    """Run one seed, and print how to repeat it if it fails."""
    simulation = Simulation(seed)
    try:
        simulation.run()
    except BaseException as error:
        error.add_note(f"Replay it: python -m tests.faults.simulation {seed}")
        raise
    return simulation


if __name__ == "__main__":
    simulate(int(sys.argv[1]))
