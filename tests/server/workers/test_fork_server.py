"""The fork server: it may be killed, it ends with its host, and it reports what went wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.server.clients import PPO, ScriptedClient, eventually, join_request
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys.server import InProcessTransport, ServiceOptions
from rl4sys.server.workers import fork_server_process
from rl4sys.server.workers.fork_server import ForkedWorker, ForkServer

Serve = Callable[..., InProcessTransport]
HOST = """
import os, sys
from pathlib import Path
from rl4sys.server.workers.fork_server import ForkServer
from rl4sys.server.workers.learner_limits import WorkerOptions
(request_end, requests), (events, event_end) = os.pipe(), os.pipe()
child = ForkServer().fork(request_end, event_end, Path(sys.argv[1]), 30, WorkerOptions())
child.wait_for_start()
print(child.pid, flush=True)
sys.stdin.read()
"""


def state_of(process: int) -> str:
    """The state letter of /proc; empty if there is no such process."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.slow
def test_workers_outlive_a_killed_fork_server_and_later_ones_come_from_a_new_one(serve: Serve) -> None:
    expected = local_learner(PPO, 24).store.newest
    transport = serve(ServiceOptions(workers="processes"))
    first = ScriptedClient(transport, join_request("a"))
    first.push(range(10))
    transport._service._learners._starter.kill()
    second = ScriptedClient(transport, join_request("b"))
    for client, begin in ((first, 10), (second, 0)):
        client.push(range(begin, 24))
        wait_for_version(client, expected.number)
    np.testing.assert_array_equal(first.weights(), expected.blob)


@pytest.mark.slow
def test_a_fork_server_has_one_thread_and_ends_with_its_host(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOST, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        worker = int(host.stdout.readline())
        forker = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        assert len(list(Path(f"/proc/{forker}/task").iterdir())) == 1
        assert b"rl4sys.server.workers.fork_server_process" in Path(f"/proc/{forker}/cmdline").read_bytes()
        host.kill()
    eventually(lambda: not any(state_of(process).strip("Z") for process in (forker, worker)), 60.0)


def test_a_failed_fork_is_reported_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = json.dumps({"directory": "a", "level": 30, "plugins": []}).encode()
    assert fork_server_process._fork(words, [*os.pipe(), theirs.detach()]) == (None, None)
    child = ForkedWorker(ForkServer(), ours)
    with pytest.raises(OSError, match="no more processes"):
        child.wait_for_start()
    child.close()


def test_a_fork_server_that_dies_before_it_forked_is_reported() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.close()
    child = ForkedWorker(ForkServer(), ours)
    with pytest.raises(OSError, match="has ended"):
        child.wait_for_start()
    child.kill()
    child.close()


def test_the_exit_code_of_a_worker_is_reported() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        running = fork_server_process.RunningChild(process.pid, os.pidfd_open(process.pid), theirs)
        socket.send_fds(theirs, [json.dumps({"pid": process.pid}).encode()], [running.pidfd])
        child = ForkedWorker(ForkServer(), ours)
        child.wait_for_start()
        assert child.pid == process.pid
        child.kill()
        fork_server_process._report_exit(running)
        assert child.wait_for_exit() == -signal.SIGKILL
        child.close()
        process.returncode = -signal.SIGKILL
