"""A server's core without threads: log, deduplication, fold, checkpoints and versions over a disk that fails."""

from __future__ import annotations

import random
import struct
from typing import Any, NamedTuple

import numpy as np
from tests.records.logs import HERE
from tests.records.simulated_disk import SimulatedDisk

from rl4sys.experience import Array
from rl4sys.records import Deduplication, LogFull, RecordLog, RecordReader, RecordsDamaged
from rl4sys.weights import ModelStore, Patch
from rl4sys.wire import to_ranges
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2

Key = tuple[int, int]
FILE_BYTES = 700
PER_VERSION = 3
CHECKPOINT = 5
WEIGHTS = 12
POISON = b"poison"
_NAME = struct.Struct("<QQ")


class Saved(NamedTuple):
    """A checkpoint, written atomically, which other tests cover."""

    position: int
    trained: tuple[Key, ...]
    version: int


class SimulatedServer:
    """Acknowledges and folds committed records, and never forgets one."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.acknowledged: set[Key] = set()
        """Everything it ever acknowledged, received or not."""
        self.history: dict[int, Key] = {}
        """Every record that a reader could have seen: none may change."""
        self.saved = [Saved(0, (), 0)]
        self.names: tuple[int, dict[str, Any]] = (0, Deduplication().state())
        self.detected = 0
        self.open(SimulatedDisk())

    def open(self, disk: SimulatedDisk) -> None:
        """Start from a disk: with the log, the identities of removed records, and checkpoints."""
        self.disk = disk
        self.log = RecordLog(HERE, file_bytes=FILE_BYTES, files=disk)
        assert self.log.first <= self.names[0], "names were forgotten with their records"
        self.seen = Deduplication()
        self.seen.restore(self.names[1])
        reader = RecordReader(HERE, self.log.first, files=disk)
        while records := reader.read():
            for record in records:
                if record.number >= self.names[0]:
                    assert self.seen.add("client", *_key(record.payload)), "stored twice"
        reader.close()
        # The newest checkpoint may be damaged: the one before it is as good.
        begin = self.saved[-1] if self.rng.random() < 0.7 else self.saved[0]
        self.position, self.trained, self.store = begin.position, list(begin.trained), _store(begin.version)
        self.reader = RecordReader(HERE, self.position, files=disk)

    def push(self, request: training_pb2.PushRequest) -> training_pb2.PushReply:
        """Store new segments; there is a reply only once all of them are safe."""
        reply = training_pb2.PushReply()
        fresh: dict[Key, bytes] = {}
        told: list[Key] = []
        for pushed in request.segments:
            key = (int(request.epoch), int(pushed.sequence))
            if pushed.segment.startswith(POISON):
                reply.refused.add(sequence=key[1], reason="REFUSAL_REASON_NOT_FINITE", message="no")
                continue
            if ("client", *key) not in self.seen:
                fresh[key] = _NAME.pack(*key) + pushed.segment
            told.append(key)
        try:
            self.log.append(list(fresh.values()))
        except LogFull as error:
            raise CallFailed(Code.UNAVAILABLE, str(error)) from error
        self.log.commit()
        for key in fresh:
            assert self.seen.add("client", *key)
        self.acknowledged |= set(told)
        reply.acknowledged.extend(to_ranges(sequence for _, sequence in told))
        return reply

    def learn(self) -> None:
        """Fold committed records; publish, save and prune when it is due."""
        for record in self.reader.read(200):
            key = _key(record.payload)
            assert self.history.setdefault(record.number, key) == key, "a record that was seen has changed"
            assert record.number == self.position
            self.trained.append(key)
            self.position += 1
            if self.position % PER_VERSION == 0:
                self.store.publish(weights(self.position // PER_VERSION))
            if self.position % CHECKPOINT == 0:
                self.saved = [*self.saved, Saved(self.position, tuple(self.trained), self.store.latest)][-2:]
                self.names = (self.log.committed, self.seen.state())
                self.log.prune(min(self.saved[0].position, self.names[0]))

    def crash(self, *, power: bool) -> None:
        """A kill, or a power cut; after a kill sometimes with a flipped bit, which must be detected or harmless."""
        if power:
            self.open(self.disk.rebooted(lambda: self.rng.random() < 0.5))
            return
        disk = self.disk.killed()
        if self.rng.random() < 0.3 and (undo := flip(disk, self.rng)) is not None:
            try:
                self.open(disk)
                self._require_all()
                return
            except RecordsDamaged:
                # The operator restores the file from a backup.
                self.detected += 1
                disk = self.disk.killed()
                undo()
        self.open(disk)

    def _require_all(self) -> None:
        assert all(("client", *key) in self.seen for key in self.acknowledged), "damage went unnoticed"

    def patch(self, have: int | None) -> Patch:
        return self.store.patch(have)


def flip(disk: SimulatedDisk, rng: random.Random) -> Any:
    """Flip one bit somewhere; returns a function that undoes it."""
    nodes = [node for node in disk.nodes.values() if node.cached]
    if not nodes:
        return None
    node = rng.choice(nodes)
    place, bit = rng.randrange(len(node.cached)), 1 << rng.randrange(8)
    # On the disk as well, or rewriting the page would heal it.
    before = bytes(node.cached), bytes(node.durable)
    node.cached[place] ^= bit

    def undo() -> None:
        node.cached[:], node.durable[:] = before

    return undo


def weights(version: int) -> Array:
    """The state of the learner after so many updates."""
    return np.random.default_rng(version).normal(size=WEIGHTS).astype(np.float32)


def _store(version: int) -> ModelStore:
    store = ModelStore(weights(0), keep=4)
    store.restore({"latest": version, "blob": weights(version)})
    return store


def _key(payload: bytes) -> Key:
    epoch, sequence = _NAME.unpack_from(payload)
    return epoch, sequence
