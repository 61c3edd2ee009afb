"""Storing needs no worker: existing learners are served and acknowledge pushes although none can start."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests.server.clients import PPO, ScriptedClient, acknowledged, join_request
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys.server import InProcessTransport, ServiceLimits, ServiceOptions
from rl4sys.server.learners import learners
from rl4sys.server.workers.fork_server import ForkServer
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2

Serve = Callable[..., InProcessTransport]
PROCESSES = ServiceOptions("processes", limits=ServiceLimits(join_seconds=0.01))


class SilentForkServer(ForkServer):
    """Takes requests, and never answers."""

    def __init__(self) -> None:
        super().__init__()
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def _started(self) -> socket.socket:
        return self._ours

    def _kill(self) -> None:
        self._ours.close()
        self._theirs.close()


@pytest.fixture
def restarted(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessTransport]:
    """A server with one learner, at version 1, none of whose workers can start."""
    client = ScriptedClient(serve(), join_request("a"))
    client.push(range(4))
    wait_for_version(client, 1)
    client.transport._service.drain()
    monkeypatch.setattr(learners, "ForkServer", SilentForkServer)
    transport = serve(PROCESSES)
    yield transport
    transport._service.drain(timeout=0.1)


def test_pushes_are_acknowledged_although_no_worker_can_start(restarted: InProcessTransport) -> None:
    client = ScriptedClient(restarted, join_request("a"))
    assert acknowledged(client.push(range(8))) == list(range(8))
    (status,) = restarted.status(status_pb2.StatusRequest(), 5.0).learners
    assert (status.state, status.stored_segments) == (status_pb2.LEARNER_STATE_STARTING, 8)


def test_the_last_version_is_served_although_no_worker_can_start(restarted: InProcessTransport) -> None:
    newcomer = ScriptedClient(restarted, join_request("a"))
    assert newcomer.joined.version == 1
    np.testing.assert_array_equal(newcomer.weights(), local_learner(PPO, 4).store.newest.blob)


def test_what_was_pushed_meanwhile_is_learned_once_workers_start(
    serve: Serve, restarted: InProcessTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    ScriptedClient(restarted, join_request("a")).push(range(4, 12))
    restarted._service.drain(timeout=0.1)
    monkeypatch.undo()
    client = ScriptedClient(serve(), join_request("a"))
    expected = local_learner(PPO, 12).store.newest
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)


def test_a_new_learner_cannot_be_made_meanwhile_and_its_client_is_asked_to_try_again(
    restarted: InProcessTransport,
) -> None:
    with pytest.raises(CallFailed, match="Join again") as failed:
        restarted.join(join_request("b"), 60.0)
    assert failed.value.code is Code.UNAVAILABLE
