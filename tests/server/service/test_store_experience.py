"""Warm start from recorded data: the log of one learner, learned from by another, each segment once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.server.clients import DQN, PPO, SAC, ScriptedClient, eventually, join_request
from tests.server.operators import Operator
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys.server import InProcessTransport
from rl4sys.server.learners.recorded_experience import RecordedLog, UnusableExperience
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import operations_pb2, status_pb2

Serve = Callable[..., InProcessTransport]


def recorded_by_ppo(transport: InProcessTransport, data: Path, count: int) -> RecordedLog:
    """The log of a learner 'source' with segments of client 'source'."""
    client = ScriptedClient(transport, join_request("source", PPO))
    client.push(range(count))
    wait_for_version(client, 1)
    return RecordedLog.open(data / "learners" / "source")


def experience(log: RecordedLog, target: ScriptedClient) -> bytes:
    return operations_pb2.RecordedExperience(segments=log.segments(target.spec)).SerializeToString()


def status_of(transport: InProcessTransport, learner: str) -> status_pb2.LearnerStatus:
    return transport.status(status_pb2.StatusRequest(learner=learner), 5.0).learners[0]


def test_a_dqn_learner_learns_from_what_ppo_recorded(serve: Serve, tmp_path: Path) -> None:
    transport = serve()
    log = recorded_by_ppo(transport, tmp_path / "data", 20)
    target = ScriptedClient(transport, join_request("target", DQN))
    reply = Operator(transport).install("target", experience(log, target), "EXPERIENCE")
    assert "20 segments of a test are stored for 'target', 0 were known" in reply.message
    # What DQN would have learned, had it recorded that itself.
    expected = local_learner(DQN, 20, client="source").store.newest
    wait_for_version(target, expected.number)
    np.testing.assert_array_equal(target.weights(), expected.blob)


def test_sent_twice_it_is_learned_once_and_a_restart_gives_the_same_weights(serve: Serve, tmp_path: Path) -> None:
    transport = serve()
    log = recorded_by_ppo(transport, tmp_path / "data", 20)
    target = ScriptedClient(transport, join_request("target", DQN))
    data = experience(log, target)
    Operator(transport).install("target", data, "EXPERIENCE")
    assert "0 segments" in Operator(transport).install("target", data, "EXPERIENCE").message
    newest = local_learner(DQN, 20, client="source").store.latest
    wait_for_version(target, newest)
    weights = target.weights(newest)
    again = ScriptedClient(serve(), join_request("target", DQN))
    assert "20 were known" in Operator(again.transport).install("target", data, "EXPERIENCE").message
    wait_for_version(again, newest)
    np.testing.assert_array_equal(again.weights(newest), weights)
    again.push(range(4))
    eventually(lambda: status_of(again.transport, "target").learned_steps == 192)


def test_a_learner_without_replay_refuses_it_and_says_what_to_do(serve: Serve, tmp_path: Path) -> None:
    transport = serve()
    log = recorded_by_ppo(transport, tmp_path / "data", 4)
    target = ScriptedClient(transport, join_request("target", PPO))
    with pytest.raises(CallFailed, match=r"fresh decisions of its own policy.*warm-start target RUN") as failed:
        Operator(transport).install("target", experience(log, target), "EXPERIENCE")
    assert failed.value.code is Code.FAILED_PRECONDITION


def test_experience_with_other_actions_does_not_fit(serve: Serve, tmp_path: Path) -> None:
    transport = serve()
    log = recorded_by_ppo(transport, tmp_path / "data", 4)
    target = ScriptedClient(transport, join_request("target", SAC))
    with pytest.raises(UnusableExperience, match="They must be equal"):
        list(log.segments(target.spec))


@pytest.mark.parametrize("change", [{"origin": "node-1"}, {"origin": "x " * 200}, {"sequence": 1 << 63}])
def test_an_identity_that_a_client_could_have_is_refused(serve: Serve, tmp_path: Path, change: dict[str, str]) -> None:
    transport = serve()
    log = recorded_by_ppo(transport, tmp_path / "data", 4)
    target = ScriptedClient(transport, join_request("target", DQN))
    segment = next(log.segments(target.spec))
    segment.MergeFrom(operations_pb2.RecordedSegment(**change))  # type: ignore[arg-type]
    data = operations_pb2.RecordedExperience(segments=[segment]).SerializeToString()
    with pytest.raises(CallFailed, match="must have a space") as failed:
        Operator(transport).install("target", data, "EXPERIENCE")
    assert failed.value.code is Code.INVALID_ARGUMENT


def test_segments_that_cannot_be_used_are_counted_and_the_others_stored(serve: Serve, tmp_path: Path) -> None:
    transport = serve()
    log = recorded_by_ppo(transport, tmp_path / "data", 4)
    target = ScriptedClient(transport, join_request("target", DQN))
    segments = list(log.segments(target.spec))
    segments[1].segment = target.encoded(1)
    segments[2].segment = b"damaged"
    data = operations_pb2.RecordedExperience(segments=segments).SerializeToString()
    reply = Operator(transport).install("target", data, "EXPERIENCE")
    assert "2 segments of a test are stored" in reply.message
    assert "2 refused (MALFORMED)" in reply.message


def test_a_directory_that_is_no_learner_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableExperience, match="is not the directory of a learner"):
        RecordedLog.open(tmp_path)
