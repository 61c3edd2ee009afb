"""`rl4sys serve --processes`: several servers that look like one to clients and operators."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import numpy as np
import pytest
from tests.faults.processes import Server, _children, free_port
from tests.server.clients import DQN, ScriptedClient, eventually, join_request
from tests.server.loopback import StubTransport
from tests.server.workers.test_fold import local_learner

from rl4sys.server.options import ImpossibleSetup
from rl4sys.server.transport.grpc_server import ServerOptions
from rl4sys.server.transport.process_group import plan_processes
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import status_pb2
from rl4sys.wire.port_range import process_of

FIRST, SECOND = "b1", "b"
"""Learners of the two processes."""


def two_free_ports() -> int:
    while True:
        port = free_port()
        with socket.socket() as next_one:
            try:
                next_one.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


@pytest.mark.parametrize("listen", ["unix:/tmp/a", "127.0.0.1:0", "127.0.0.1:65535"])
def test_several_processes_need_a_port_that_free_ones_follow(listen: str) -> None:
    with pytest.raises(ImpossibleSetup, match="needs --listen HOST:PORT with a port that 1 free ones follow"):
        plan_processes(ServerOptions(listen=listen), 2)


def test_each_process_has_its_port_its_data_and_its_metrics() -> None:
    options = ServerOptions(listen="127.0.0.1:50051", data=Path("data"), metrics_port=9100)
    first, second = plan_processes(options, 2)
    assert first.arguments[:4] == ("--listen", "127.0.0.1:50051", "--data", "data/process-0")
    assert second.arguments[4:] == ("--metrics-port", "9101", "--part", "1/2/127.0.0.1:50051-50052")


@pytest.mark.slow
def test_learners_are_divided_and_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    assert [process_of(name, 2) for name in (FIRST, SECOND)] == [0, 1]
    expected = local_learner(DQN, 30, SECOND).store.newest
    server = Server(tmp_path, "--processes", "2", port=two_free_ports())
    second = StubTransport(server.port + 1)
    try:
        server.start()
        ScriptedClient(server.transport, join_request(FIRST, DQN)).push(range(4))
        with pytest.raises(CallFailed, match="belongs to another process of this server"):
            ScriptedClient(server.transport, join_request(SECOND, DQN))
        client = ScriptedClient(second, join_request(SECOND, DQN))
        client.push(range(20))
        os.kill(sorted(_children(server.process.pid))[1], signal.SIGKILL)
        eventually(lambda: _answers(second), 120.0)
        again = ScriptedClient(second, join_request(SECOND, DQN))
        again.push(range(30))
        eventually(lambda: _version(second) >= expected.number, 120.0)
        np.testing.assert_array_equal(again.weights(), expected.blob)
        assert server.terminate(60.0) == 0
    finally:
        second.close()
        server.close()


def _answers(transport: StubTransport) -> bool:
    try:
        transport.status(status_pb2.StatusRequest(), 5.0)
    except CallFailed:
        return False
    return True


def _version(transport: StubTransport) -> int:
    return int(transport.status(status_pb2.StatusRequest(learner=SECOND), 5.0).learners[0].version)
