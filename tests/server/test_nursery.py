"""The process that workers are forked from: it may be killed, it ends with its host, and it says what went wrong."""

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
from tests.server.test_exactness import local_learner, wait_for_version

from rl4sys.server import InProcessTransport, ServiceOptions, nursery_process
from rl4sys.server.nursery import Child, Nursery

Serve = Callable[..., InProcessTransport]
HOST = """
import os, sys
from pathlib import Path
from rl4sys.server.nursery import Nursery
(request_end, requests), (events, event_end) = os.pipe(), os.pipe()
child = Nursery().order(request_end, event_end, Path(sys.argv[1]), 30, ())
child.begin()
print(child.pid, flush=True)
sys.stdin.read()
"""


def state_of(process: int) -> str:
    """As Linux tells it; empty for none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.slow
def test_workers_outlive_it_and_the_next_one_comes_from_another(serve: Serve) -> None:
    expected = local_learner(PPO, 24).store.newest
    transport = serve(ServiceOptions(workers="processes"))
    first = ScriptedClient(transport, join_request("a"))
    first.push(range(10))
    transport._service._learners._nursery.kill()
    second = ScriptedClient(transport, join_request("b"))
    for client, begin in ((first, 10), (second, 0)):
        client.push(range(begin, 24))
        wait_for_version(client, expected.number)
    np.testing.assert_array_equal(first.weights(), expected.blob)


@pytest.mark.slow
def test_it_forks_with_one_thread_and_ends_with_its_host(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOST, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        worker = int(host.stdout.readline())
        maker = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        assert len(list(Path(f"/proc/{maker}/task").iterdir())) == 1
        assert b"rl4sys.server.nursery_process" in Path(f"/proc/{maker}/cmdline").read_bytes()
        host.kill()
    eventually(lambda: not any(state_of(process).strip("Z") for process in (maker, worker)), 60.0)


def test_a_fork_that_is_refused_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = json.dumps({"directory": "a", "level": 30, "plugins": []}).encode()
    assert nursery_process._fork(words, [*os.pipe(), theirs.detach()]) == (None, None)
    child = Child(Nursery(), ours)
    with pytest.raises(OSError, match="no more processes"):
        child.begin()
    child.close()


def test_one_that_dies_before_it_forked_is_told() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.close()
    child = Child(Nursery(), ours)
    with pytest.raises(OSError, match="has ended"):
        child.begin()
    child.kill()
    child.close()


def test_the_end_of_a_child_is_told_with_its_code() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        made = nursery_process.Made(process.pid, os.pidfd_open(process.pid), theirs)
        socket.send_fds(theirs, [json.dumps({"pid": process.pid}).encode()], [made.handle])
        child = Child(Nursery(), ours)
        child.begin()
        assert child.pid == process.pid
        child.kill()
        nursery_process._tell_end(made)
        assert child.code() == -signal.SIGKILL
        child.close()
        process.returncode = -signal.SIGKILL
