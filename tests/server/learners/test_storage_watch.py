"""A disk that runs short, and data that are removed under a live server."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.clients import PPO, ScriptedClient, eventually, join_request
from tests.server.workers.test_fold import wait_for_version

from rl4sys.server import InProcessTransport
from rl4sys.server.learners.inbox import Inbox
from rl4sys.server.learners.learners import Learners
from rl4sys.server.learners.storage_watch import DiskSpace
from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2

Serve = Callable[..., InProcessTransport]
TOTAL = 100 << 20


@pytest.fixture
def client(serve: Serve) -> ScriptedClient:
    return ScriptedClient(serve(), join_request("a", PPO))


def learners_of(client: ScriptedClient) -> Learners:
    assert isinstance(client.transport, InProcessTransport)
    return client.transport._service._learners


def inbox_of(client: ScriptedClient) -> Inbox:
    learner = learners_of(client).find("a")
    assert learner is not None
    return learner.inbox


def status(client: ScriptedClient) -> status_pb2.StatusReply:
    return client.transport.status(status_pb2.StatusRequest(), 5.0)


def refusal_of(client: ScriptedClient, sequence: int) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        client.push([sequence])
    assert (caught.value.code, caught.value.failure.reason) == (Code.UNAVAILABLE, FailureReason.STORAGE)
    return caught.value


def test_a_disk_that_runs_short_stops_acknowledgements_before_it_is_full(client: ScriptedClient) -> None:
    learners = learners_of(client)
    client.push([0])
    learners.storage._space = lambda path: DiskSpace(TOTAL, 1_000)
    learners.check_storage()
    assert "has 1000 bytes left, and 5242880 are kept free (limits.disk_reserve_bytes)" in str(refusal_of(client, 1))
    server = status(client).server
    assert (server.state, server.disk_free_bytes) == (status_pb2.SERVER_STATE_STORAGE_FAILED, 1_000)
    with pytest.raises(CallFailed, match="cannot be stored: The disk"):
        ScriptedClient(client.transport, join_request("b", PPO))
    learners.storage._space = lambda path: DiskSpace(TOTAL, TOTAL)
    learners.check_storage()
    client.push([1])
    assert status(client).server.state == status_pb2.SERVER_STATE_SERVING


def test_a_disk_full_of_learned_records_frees_itself(client: ScriptedClient) -> None:
    learners, inbox = learners_of(client), inbox_of(client)
    client.push(range(12))
    wait_for_version(client, 3)
    eventually(lambda: inbox.unfolded == 0)
    # Only the log takes space here.
    learners.storage._space = lambda path: DiskSpace(TOTAL, TOTAL // 20 + 1_000 - inbox.log_bytes)
    learners.check_storage()
    assert inbox.problem
    eventually(lambda: inbox.log_bytes < 1_000)
    learners.check_storage()
    client.push([12])
    assert client.push(range(13)).repeated_segments == 13
    assert status(client).server.state == status_pb2.SERVER_STATE_SERVING


def test_a_removed_learner_acknowledges_nothing_and_comes_back_as_nothing(client: ScriptedClient) -> None:
    client.push([0])
    directory = inbox_of(client).directory
    shutil.rmtree(directory)
    refusal_of(client, 1)
    learners_of(client).check_storage()
    assert "was removed or replaced while the server was running" in str(refusal_of(client, 2))
    reply = status(client)
    assert reply.server.state == status_pb2.SERVER_STATE_STORAGE_FAILED
    assert "was removed or replaced" in reply.learners[0].problem
    client.transport._service.drain()  # type: ignore[attr-defined]  # the transport is in this process
    assert not directory.exists()


def test_a_removed_data_directory_is_noticed_without_a_push(client: ScriptedClient, tmp_path: Path) -> None:
    client.push([0])
    shutil.rmtree(tmp_path / "data")
    learners_of(client).check_storage()
    server = status(client).server
    assert server.state == status_pb2.SERVER_STATE_STORAGE_FAILED
    assert f"{tmp_path / 'data'} was removed or replaced" in server.problem
    refusal_of(client, 1)
    with pytest.raises(CallFailed, match="was removed or replaced"):
        ScriptedClient(client.transport, join_request("b", PPO))
