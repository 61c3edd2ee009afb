"""From any version of a client to any other: its weights equal the server's, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from tests.client.agents import SETTINGS
from tests.client.fake_server import FakeServer, some_weights
from tests.hostile.attacks import Aborted, Handlers
from tests.hostile.damaging_server import digest
from tests.hostile.mutations import mutated
from tests.server.clients import ScriptedClient, eventually, join_request
from tests.storms import scaled

from rl4sys.client import load_settings
from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.governor import Governor
from rl4sys.client.policy_interface import PolicyInterface
from rl4sys.client.retries import Backoff
from rl4sys.client.shared_session import SharedSession
from rl4sys.client.shared_session import join_request as request_of
from rl4sys.client.snapshot import Snapshot
from rl4sys.client.watcher import _UNUSABLE, Watcher
from rl4sys.experience import Array
from rl4sys.records import Durability
from rl4sys.server import InProcessTransport, ServiceOptions, TrainingService
from rl4sys.weights import apply_patch
from rl4sys.wire import decode_patch
from rl4sys.wire.generated import training_pb2, weights_pb2

VERSIONS, KEPT = 40, 16


def filled() -> tuple[FakeServer, dict[int, Array]]:
    """A server with many versions, and all of them, including those that it no longer keeps."""
    server = FakeServer()
    first = some_weights(server.spec)
    every = {0: server.store.newest.blob}
    rng = np.random.default_rng(3)
    for number in range(1, VERSIONS + 1):
        step = 1e-3 * rng.standard_normal(first.size) if number % 7 else np.zeros(first.size)
        server.publish((server.store.newest.blob + step).astype(np.float32))
        every[number] = server.store.newest.blob
    return server, every


class Receiver:
    """The part of a client that pulls weights, without its threads."""

    def __init__(self, server: FakeServer) -> None:
        self.newest, self.status = Governor(), AgentStatus()
        shared_session = SharedSession(server, load_settings(SETTINGS), request_of(load_settings(SETTINGS), "test"))
        self.watcher = Watcher(
            shared_session,
            server,
            self.newest,
            PolicyInterface.of,
            1.0,
            Backoff(random.Random(0)),
            lambda: 0.0,
            self.status,
            lambda snapshot: None,
        )
        self.opened = shared_session.open()

    def has(self, version: int, weights: Array) -> None:
        opened = self.opened
        snapshot = Snapshot(PolicyInterface.of(opened.spec, None), opened.schema_hash, "test", version, weights, 100)
        self.newest.publish(snapshot, 0.0)


def damaging(chance: random.Random, share: float) -> Callable[[weights_pb2.PatchChunk], weights_pb2.PatchChunk]:
    """Damages some parts of patches on their way."""

    def tamper(chunk: weights_pb2.PatchChunk) -> weights_pb2.PatchChunk:
        whole = chunk.SerializeToString()
        while chance.random() < share:
            try:
                return weights_pb2.PatchChunk.FromString(mutated(whole, [whole], chance))
            except DecodeError:
                continue
        return chunk

    return tamper


@pytest.mark.slow
def test_a_client_ends_with_the_weights_of_the_server_from_any_start(tally: Callable[[str, int], None]) -> None:
    count = scaled(500, 10_000)
    tally("version pairs", count)
    server, every = filled()
    receiver, latest = Receiver(server), server.store.latest
    for seed in range(count):
        chance = random.Random(seed)
        have = chance.choice((latest - 1, latest - 2, chance.randrange(latest), latest + chance.randint(1, 9)))
        # Beyond the newest, weights of a history that the server has lost.
        receiver.has(have, every.get(have, some_weights(server.spec, 99)))
        server.tamper = damaging(chance, 0.5)
        for attempt in range(50):
            try:
                if have > latest:
                    receiver.watcher._pull(receiver.opened, None)
                elif attempt % 2 == seed % 2:
                    receiver.watcher._pull(receiver.opened, receiver.newest.snapshot)
                else:
                    watch = training_pb2.WatchRequest(session="session-1", have=have, max_patch_bytes=1 << 20)
                    receiver.watcher._receive(receiver.opened, next(iter(server.watch(watch))))
            except _UNUSABLE:
                # As in the thread of the watcher: it tries again.
                pass
            snapshot = receiver.newest.snapshot
            assert snapshot is not None
            if digest(snapshot.weights) == server.store.newest.sha256:
                break
            assert snapshot.version == have, (seed, "weights that were never published")
            assert digest(snapshot.weights) == digest(every.get(have, some_weights(server.spec, 99))), seed
        else:
            raise AssertionError((seed, have, "never arrived"))
    assert receiver.status.count("damaged_patches") > count / 20


@pytest.mark.slow
def test_any_pair_of_versions_is_patched_or_refused(tally: Callable[[str, int], None]) -> None:
    """The reply of the server to (have, want): kept, pruned, unknown and extreme versions."""
    count = scaled(500, 10_000)
    tally("version pairs", count)
    with TrainingService(None, ServiceOptions("threads", Durability.MEMORY)) as service:
        client = ScriptedClient(InProcessTransport(service), join_request("a"))
        learner = service._learners.find("a")
        assert learner is not None
        assert learner.newest is not None
        size, every = learner.newest.blob.size, {0: learner.newest.blob}
        rng = np.random.default_rng(0)
        for number in range(1, VERSIONS + 1):
            every[number] = (every[number - 1] + 1e-3 * rng.standard_normal(size)).astype(np.float32)
            learner.versions.publish(number, every[number].tobytes())
            eventually(lambda number=number: learner.version == number)
        handlers = Handlers(service)
        for seed in range(count):
            _bridge(random.Random(seed), handlers, client.joined.session, every, size)


def _bridge(chance: random.Random, handlers: Handlers, session: str, every: dict[int, Array], size: int) -> None:
    have, want = (
        chance.choice((None, VERSIONS, VERSIONS - 1, chance.randint(0, VERSIONS + 3), 2**63 - 1, 2**64 - 1))
        for _ in range(2)
    )
    request = training_pb2.PullRequest(session=session, have=have, want=want)
    target = VERSIONS if want is None else want
    try:
        chunks: Any = handlers.call("Pull", request.SerializeToString())
    except Aborted as refused:
        if refused.code != "NOT_FOUND" or target in range(VERSIONS - KEPT + 1, VERSIONS + 1):
            raise AssertionError((have, want)) from refused
        return
    if not chunks:
        assert want is None
        assert have is not None
        assert have >= VERSIONS
        return
    patch = decode_patch(chunks, size)
    base = None if patch.base is None else every[patch.base]
    assert patch.base in (None, have)
    assert (patch.target, digest(apply_patch(base, patch, size))) == (target, digest(every[target]))
