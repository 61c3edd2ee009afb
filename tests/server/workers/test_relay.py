"""A worker elsewhere, without a network: what it learns is what a worker here would, whatever is lost."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.clients import DQN, PPO, ScriptedClient, join_request
from tests.server.workers.test_fold import Method, local_learner, wait_for_version

from rl4sys.checkpoints import Checkpoints
from rl4sys.server import InProcessTransport, ServiceOptions
from rl4sys.server.workers.learner_limits import WorkerOptions
from rl4sys.server.workers.relay import Relay, RelayOrder, RemoteLost
from rl4sys.server.workers.remote_worker import RemoteWorker

Serve = Callable[..., InProcessTransport]
OFTEN = {"checkpoint_frequency": 32}


class NearbyWorker:
    """A remote worker in this process, which can be lost."""

    def __init__(self, order: str) -> None:
        self._worker = RemoteWorker(order)
        self.is_lost = False

    def call(self, method: str, *arguments: Any) -> Any:
        if self.is_lost:
            raise RemoteLost("The node was lost.")
        reply = getattr(self._worker, method)(*arguments)
        if self.is_lost:
            raise RemoteLost("The node was lost.")
        return reply

    def close(self) -> None:
        self.is_lost = True


class _Started:
    """A relay in a thread of this process, in place of a worker process."""

    pid = None

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._thread = threading.Thread(target=relay.run, daemon=True)
        self._thread.start()

    def wait_for_start(self) -> None:
        return

    def wait_for_exit(self) -> int:
        self._thread.join()
        return 0

    def kill(self) -> None:
        self._relay.kill()

    def close(self) -> None:
        self._thread.join()


class NearbyCluster:
    """Starts workers as the bridge to Ray does."""

    def __init__(self) -> None:
        self.workers: list[NearbyWorker] = []

    def fork(self, requests: int, events: int, directory: Path, level: int, options: WorkerOptions) -> _Started:
        order = RelayOrder(directory, level, WorkerOptions(options.plugins, options.limits, None, None))
        return _Started(Relay(order, os.dup(requests), os.dup(events), self._make))

    def _make(self, order: str) -> NearbyWorker:
        self.workers.append(NearbyWorker(order))
        return self.workers[-1]

    def kill(self) -> None:
        return


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> NearbyCluster:
    found = NearbyCluster()
    monkeypatch.setattr("rl4sys.server.learners.learners._worker_starter", lambda options: found)
    # The worker shares this process, and its log.
    monkeypatch.setattr("rl4sys.server.workers.remote_worker.send_logs_to_host", lambda send, level: None)
    return found


def elsewhere(serve: Serve) -> InProcessTransport:
    return serve(ServiceOptions(workers="ray", restart_seconds=0.01))


@pytest.mark.parametrize("method", [PPO, DQN], ids=lambda method: method[0])
def test_a_worker_elsewhere_that_is_lost_is_replaced_and_learns_the_same(
    serve: Serve, cluster: NearbyCluster, method: Method
) -> None:
    often = (method[0], method[1] | OFTEN)
    expected = local_learner(often, 30).store.newest
    client = ScriptedClient(elsewhere(serve), join_request("a", often))
    client.push(range(12))
    wait_for_version(client, 1)
    cluster.workers[-1].close()
    client.push(range(12, 30))
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)
    assert len(cluster.workers) > 1


@pytest.mark.parametrize("method", [PPO, DQN], ids=lambda method: method[0])
def test_a_server_that_is_restarted_restores_its_worker_elsewhere(
    serve: Serve, cluster: NearbyCluster, tmp_path: Path, method: Method
) -> None:
    expected = local_learner(method, 30).store.newest
    first = ScriptedClient(elsewhere(serve), join_request("a", method))
    first.push(range(20))
    wait_for_version(first, 1)
    transport = elsewhere(serve)
    stored = Checkpoints(tmp_path / "data" / "learners" / "a" / "checkpoints", 2)
    assert 0 < stored.load().step <= 20
    client = ScriptedClient(transport, join_request("a", method))
    client.push(range(20, 30))
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)
