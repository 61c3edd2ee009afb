"""Kills of workers on Ray, of their nodes and of the host: nothing is lost, trained twice or changed."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.faults.processes import Client, Server
from tests.faults.test_kill_storm import LEARNERS, MEMBERS, SEEN, TIMEOUT, _check, _keep, _wait_for_acknowledgements
from tests.laboratory.trials.ray_cluster import SmallCluster, small_cluster
from tests.server.clients import ScriptedClient, eventually, join_request
from tests.server.workers.ray_workers import ray_workers
from tests.storms import scaled

VICTIMS = ("worker", "node", "host")


@pytest.mark.cluster
@pytest.mark.timeout(3_600)
@pytest.mark.filterwarnings("ignore")
def test_kills_of_worker_node_and_host_lose_repeat_and_change_nothing(
    tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    kills = scaled(6, 20)
    tally("kill -9 of a worker on Ray, its node or its host", kills)
    with small_cluster(3) as cluster:
        server = Server(tmp_path, "--workers", "ray", "--address", cluster.address)
        clients = [Client(tmp_path, server.address, name, learner, pause=0.1) for name, learner in MEMBERS.items()]
        try:
            server.start()
            for learner, method in LEARNERS.items():
                ScriptedClient(server.transport, join_request("maker", method, learner, SEEN))
            for client in clients:
                client.start()
            for number in range(kills):
                _kill(VICTIMS[number % len(VICTIMS)], server, cluster, clients, random.Random(number), tmp_path)
            eventually(lambda: all(client.version > 0 for client in clients), TIMEOUT)
            healths = [client.finish() for client in clients]
            for learner in LEARNERS:
                eventually(lambda learner=learner: server.has_learned(f"shared~{learner}"), TIMEOUT)
            versions = {learner: server.learner(f"shared~{learner}").version for learner in LEARNERS}
            assert server.terminate(60.0) == 0
        finally:
            for client in clients:
                client.close()
            server.close()
    assert [(health["flushed"], health["drops"]) for health in healths] == [(True, {})] * len(clients)
    for learner in LEARNERS:
        members = [client for client in clients if client.learner == learner]
        _check(tmp_path, learner, members, versions[learner], kills)


def _kill(
    victim: str, server: Server, cluster: SmallCluster, clients: list[Client], rng: random.Random, place: Path
) -> None:
    """Kill something in the middle of work; a node is replaced."""
    _wait_for_acknowledgements(clients)
    threading.Event().wait(rng.uniform(0.5, 4.0))
    _keep(server.data, place / "archive")
    if victim == "host":
        server.kill()
        server.start()
    elif victim == "node":
        cluster.kill(0)
        # Acknowledged although the node of a learner is gone.
        _wait_for_acknowledgements(clients)
        cluster.add()
    elif workers := ray_workers():
        with suppress(ProcessLookupError):
            os.kill(rng.choice(workers), signal.SIGKILL)
