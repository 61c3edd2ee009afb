"""Data of another version is refused with the versions and advice."""

from __future__ import annotations

import json
import logging
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from tests.client.agents import agent_on
from tests.client.fake_server import FakeServer
from tests.server.clients import PPO, ScriptedClient, eventually, join_request
from tests.server.workers.test_fold import local_learner

from rl4sys.checkpoints import files as checkpoint_files
from rl4sys.client import ConnectError
from rl4sys.server import InProcessTransport, ServiceOptions, TrainingService
from rl4sys.server.learners.condition import Condition
from rl4sys.wire import Failure, FailureReason, Question, RefusalReason, encode_question
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2

THREADS = ServiceOptions("threads", restart_seconds=0.01)


@pytest.fixture
def transport(tmp_path: Path) -> Iterator[InProcessTransport]:
    service = TrainingService(tmp_path / "own", THREADS)
    yield InProcessTransport(service)
    service.drain()


def refused(transport: InProcessTransport, request: training_pb2.JoinRequest) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        transport.join(request, 30.0)
    return failed.value


def test_a_client_of_an_older_protocol_gets_the_supported_versions(transport: InProcessTransport) -> None:
    request = join_request("a")
    request.protocol = 0
    failed = refused(transport, request)
    assert failed.failure.reason is FailureReason.PROTOCOL
    assert "protocol 0" in str(failed)
    assert "1 to 1" in str(failed)
    assert "Upgrade the client" in str(failed)


def test_a_client_of_a_newer_protocol_is_answered_in_the_protocol_of_the_server(transport: InProcessTransport) -> None:
    request = join_request("a")
    request.protocol = 7
    assert transport.join(request, 30.0).protocol == 1


def test_a_client_without_a_needed_op_or_head_gets_its_name(transport: InProcessTransport) -> None:
    request = join_request("a")
    request.ops.remove("linear")
    del request.heads[:]
    failed = refused(transport, request)
    assert failed.failure.reason is FailureReason.MISSING_OPS
    assert "linear" in str(failed)
    assert "the head categorical" in str(failed)
    assert "set decide: server or upgrade" in str(failed)


class Newer(FakeServer):
    """A server that speaks a protocol which does not exist yet."""

    def join(self, request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
        reply = super().join(request, timeout)
        reply.protocol = 2
        return reply


class OnlyNewer(FakeServer):
    """A server that no longer speaks the client's protocol, and says so."""

    def join(self, request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
        raise CallFailed(
            Code.FAILED_PRECONDITION,
            f"The client speaks protocol {request.protocol}; this server speaks 2 to 3. Upgrade the client.",
            Failure(FailureReason.PROTOCOL),
        )


@pytest.mark.parametrize("server", [Newer, OnlyNewer])
def test_a_server_of_a_newer_protocol_is_refused_at_once(server: Callable[[], FakeServer]) -> None:
    with pytest.raises(ConnectError, match=r"(?s)protocol \d.*speaks.*Upgrade") as failed:
        agent_on(server(), timeout=60)
    assert {"1", "2"} <= set(str(failed.value)), "both versions are named"


def test_segments_and_questions_of_another_schema_are_refused(transport: InProcessTransport) -> None:
    client = ScriptedClient(transport, join_request("a"))
    client.joined.schema_hash = bytes(32)
    (refusal,) = client.push([0]).refused
    assert RefusalReason(refusal.reason) is RefusalReason.SCHEMA
    assert "Join again" in refusal.message
    question = Question("agent", 0, 0, {"queue": np.ones((1, 3), np.float32)}, None, 1)
    message = encode_question(client.form, question, client.joined.session)
    message.schema_hash = bytes(32)
    with pytest.raises(CallFailed, match="another schema") as failed:
        transport.act(message, 5.0)
    assert failed.value.failure.reason is FailureReason.SCHEMA


@pytest.fixture
def learner(tmp_path: Path) -> Path:
    """The directory of a learner that has learned and was closed."""
    with TrainingService(tmp_path, THREADS) as service:
        ScriptedClient(InProcessTransport(service), join_request("a")).push(range(5))
    return tmp_path / "learners" / "a"


def problem_of(directory: Path) -> str:
    """The problem of a server that resumes this learner; other learners are not affected."""
    with TrainingService(directory.parents[1], THREADS) as service:
        transport = InProcessTransport(service)
        failed = refused(transport, join_request("a"))
        assert failed.code is Code.FAILED_PRECONDITION
        assert failed.failure.reason is FailureReason.LEARNER_FAILED
        ScriptedClient(transport, join_request("b")).push([0])
    return str(failed)


def held_problem(directory: Path) -> str:
    """The problem of a learner that is held: it is still served, as other learners are."""
    with TrainingService(directory.parents[1], THREADS) as service:
        transport = InProcessTransport(service)
        held = service._learners.find("a")
        assert held is not None
        eventually(lambda: held.condition is Condition.HELD)
        for name in "ab":
            assert ScriptedClient(transport, join_request(name)).weights().size > 0
        return held.problem


def test_a_setup_of_a_newer_format_is_refused_by_name(learner: Path) -> None:
    setup = json.loads((learner / "setup.json").read_text())
    (learner / "setup.json").write_text(json.dumps(setup | {"format": 9}))
    problem = problem_of(learner)
    assert "format 9" in problem
    assert "reads 1" in problem
    assert "version that wrote it" in problem


def test_a_log_of_a_newer_format_is_refused_by_name_and_not_changed(learner: Path) -> None:
    (file,) = (learner / "log").glob("0*")
    data = file.read_bytes()
    head = struct.pack("<8sIQ", data[:8], 9, 0)
    newer = head + struct.pack("<I", crc32(head)) + data[len(head) + 4 :]
    file.write_bytes(newer)
    # A checkpoint that covers the whole log would be enough.
    shutil.rmtree(learner / "checkpoints")
    problem = held_problem(learner)
    assert "format 9" in problem
    assert "format 1" in problem
    assert file.read_bytes() == newer


def test_a_checkpoint_of_a_newer_format_is_skipped_and_the_log_folded(
    learner: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Not asked of the server: it may have been closed before it had learned from everything.
    expected = local_learner(PPO, 5).store.newest.blob
    _reseal(learner)
    with caplog.at_level(logging.WARNING), TrainingService(learner.parents[1], THREADS) as service:
        client = ScriptedClient(InProcessTransport(service), join_request("a"))
        # The log is folded again while clients may call already.
        eventually(lambda: np.array_equal(client.weights(), expected))
    assert "format 9 is not 1; resume with the version that wrote it" in caplog.text


def test_a_newer_checkpoint_without_its_log_is_never_overwritten(
    learner: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with TrainingService(learner.parents[1], THREADS) as service:
        client = ScriptedClient(InProcessTransport(service), join_request("a"))
        hosted = service._learners.find("a")
        assert hosted is not None
        hosted.inbox._records._file_bytes = 100
        client.push([5])
        client.push([6])
        hosted.inbox.prune(6)
    assert not (learner / "log" / f"{0:020d}.records").exists()
    _reseal(learner)
    with caplog.at_level(logging.WARNING):
        problem = held_problem(learner)
    assert "no longer has record 0" in problem
    assert "format 9 is not 1; resume with the version that wrote it" in caplog.text


def _reseal(learner: Path) -> None:
    """Give every checkpoint a format that does not exist yet, with a manifest that is otherwise right."""
    for path in (learner / "checkpoints").glob("0*/manifest.json"):
        manifest = json.loads(path.read_text())["manifest"] | {"format": 9}
        path.write_text(json.dumps({"sha256": checkpoint_files._seal(manifest), "manifest": manifest}))
