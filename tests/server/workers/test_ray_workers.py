"""`rl4sys serve --workers ray`: the bits of a worker here, whatever is killed, and clear refusals."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.faults.processes import Server
from tests.laboratory.trials.ray_cluster import small_cluster
from tests.server.clients import DQN, ScriptedClient, eventually, join_request
from tests.server.workers.ray_workers import ray_workers
from tests.server.workers.test_fold import local_learner

METHOD = (DQN[0], DQN[1] | {"checkpoint_frequency": 32})
SECONDS = 240.0
"""Ray starts processes with torch, on a machine that may be busy."""


def has_version(server: Server, version: int) -> bool:
    return server.learner("a").version >= version


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_on_ray_that_is_killed_is_replaced_and_learns_the_same(tmp_path: Path) -> None:
    expected = local_learner(METHOD, 40).store.newest
    server = Server(tmp_path, "--workers", "ray")
    try:
        server.start()
        client = ScriptedClient(server.transport, join_request("a", METHOD))
        client.push(range(20))
        eventually(lambda: has_version(server, 1), SECONDS)
        os.kill(ray_workers()[0], signal.SIGKILL)
        client.push(range(20, 40))
        eventually(lambda: has_version(server, expected.number), SECONDS)
        np.testing.assert_array_equal(client.weights(), expected.blob)
        assert server.terminate(60.0) == 0
    finally:
        server.close()
    eventually(lambda: not ray_workers(), SECONDS)


@pytest.mark.cluster
@pytest.mark.filterwarnings("ignore")
def test_a_learner_whose_node_is_gone_acknowledges_and_continues_on_another(tmp_path: Path) -> None:
    expected = local_learner(METHOD, 40).store.newest
    with small_cluster(1) as cluster:
        server = Server(tmp_path, "--workers", "ray", "--address", cluster.address)
        try:
            server.start()
            client = ScriptedClient(server.transport, join_request("a", METHOD))
            client.push(range(20))
            eventually(lambda: has_version(server, 1), SECONDS)
            cluster.kill(0)
            assert len(client.push(range(20, 40)).acknowledged) == 1
            cluster.add()
            eventually(lambda: has_version(server, expected.number), SECONDS)
            np.testing.assert_array_equal(client.weights(), expected.blob)
        finally:
            server.close()


def refused(tmp_path: Path, *options: str) -> str:
    command = [sys.executable, "-m", "rl4sys.server", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]
    found = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120)
    assert found.returncode == 2, found.stderr
    return found.stderr


@pytest.mark.slow
def test_an_address_where_no_process_answers_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        answer = refused(tmp_path, "--workers", "ray", "--address", address)
    assert answer.splitlines()[-1].startswith(f"error: No Ray cluster answers at {address}")


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        (("--address", "auto"), "Give --workers ray, too."),
        (("--workers", "ray", "--address", "http://host:8265"), "is that of a dashboard"),
        (("--workers", "ray", "--durability", "memory"), "durability=memory keeps the log in this process"),
    ],
)
def test_options_that_contradict_each_other_are_refused(tmp_path: Path, options: tuple[str, ...], answer: str) -> None:
    assert answer in refused(tmp_path, *options)
