from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.server.clients import DQN, PPO, ScriptedClient, acknowledged, eventually, join_request

from rl4sys.experience import ArraySpec
from rl4sys.records import RecordReader
from rl4sys.server import InProcessTransport
from rl4sys.server.learners.stored_segments import StoredSegment
from rl4sys.wire import (
    ContractViolation,
    FailureReason,
    Question,
    RefusalReason,
    decode_decision,
    encode_question,
    parse,
)
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2

Serve = Callable[..., InProcessTransport]


def status(transport: InProcessTransport) -> status_pb2.StatusReply:
    return transport.status(status_pb2.StatusRequest(), 5.0)


def test_a_client_joins_pushes_and_pulls_what_was_learned(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    first = client.weights()
    assert acknowledged(client.push(range(8))) == list(range(8))
    eventually(lambda: status(client.transport).learners[0].version >= 2)
    assert not np.array_equal(first, client.weights())


def test_a_watch_sends_new_versions_with_their_patches(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    watching = client.transport.watch(
        training_pb2.WatchRequest(session=client.joined.session, have=0, max_patch_bytes=1 << 20)
    )
    client.push(range(4))
    news = next(iter(watching))
    watching.cancel()
    assert news.version == 1
    assert news.patch.header.target == 1
    assert list(watching) == []


def test_a_client_with_an_unpublished_version_gets_the_newest_in_full(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    session = client.joined.session
    pulled = list(client.transport.pull(training_pb2.PullRequest(session=session, have=2**60), 5.0))
    watching = client.transport.watch(training_pb2.WatchRequest(session=session, have=2**60, max_patch_bytes=1 << 20))
    news = next(iter(watching))
    watching.cancel()
    for header in (pulled[0].header, news.patch.header):
        assert (header.target, header.HasField("base")) == (0, False)


def test_acknowledged_segments_are_in_the_log_with_their_exact_bytes(serve: Serve, tmp_path: Path) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    data = client.encoded(7)
    client.push_bytes({7: data})
    reader = RecordReader(tmp_path / "data" / "learners" / "a" / "log")
    records = reader.read()
    reader.close()
    assert [StoredSegment.decode(record.payload) for record in records] == [StoredSegment("a", 1, 7, 8, data)]


def test_a_repeat_is_acknowledged_and_ignored_even_after_a_restart(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    client.push(range(3))
    assert client.push(range(4)).repeated_segments == 3
    again = ScriptedClient(serve(), join_request("a"))
    reply = again.push(range(5))
    assert (acknowledged(reply), reply.repeated_segments) == ([0, 1, 2, 3, 4], 4)
    assert status(again.transport).learners[0].stored_segments == 5


def test_segments_that_cannot_be_learned_from_are_refused_one_by_one(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    good = client.encoded(0)
    nan = client.encoded(1).replace(client.encoded(1)[-4:], b"\x00\x00\xc0\x7f")
    reply = client.push_bytes({0: good, 1: nan, 2: good[:-3], 3: b"\xff" * 40, 4: client.encoded(4, version=9)})
    assert acknowledged(reply) == [0]
    reasons = {refusal.sequence: RefusalReason(refusal.reason) for refusal in reply.refused}
    assert reasons == {
        1: RefusalReason.NOT_FINITE,
        2: RefusalReason.MALFORMED,
        3: RefusalReason.MALFORMED,
        4: RefusalReason.UNKNOWN_VERSION,
    }


def test_bad_segments_of_one_client_do_not_affect_another(serve: Serve) -> None:
    transport = serve()
    good, bad = ScriptedClient(transport, join_request("good")), ScriptedClient(transport, join_request("bad"))
    for sequence in range(8):
        bad.push_bytes({sequence: b"\x00" * 100})
        good.push([sequence])
    eventually(lambda: status(transport).learners[1].version == 2)
    assert status(transport).learners[0].version == 0
    alone = ScriptedClient(transport, join_request("alone"))
    alone.name = "good"
    alone.push(range(8))
    eventually(lambda: status(transport).learners[0].version == 2)
    np.testing.assert_array_equal(alone.weights(), good.weights())


def test_clients_that_name_the_same_policy_share_its_learner(serve: Serve) -> None:
    transport = serve()
    first = ScriptedClient(transport, join_request("a", policy_id="fleet"))
    second = ScriptedClient(transport, join_request("b", None, policy_id="fleet"))
    own = ScriptedClient(transport, join_request("fleet"))
    assert first.joined.learner == second.joined.learner != own.joined.learner
    first.push(range(2))
    second.push(range(2))
    eventually(lambda: status(transport).learners[1].version == 1)


@pytest.mark.parametrize(
    "request_",
    [
        join_request("b", DQN, policy_id="fleet"),
        join_request("b", ("PPO", {"algorithm": {"lr": 0.5}}), policy_id="fleet"),
        join_request("b", policy_id="fleet", observation=[ArraySpec("queue", "float32", (4,))]),
    ],
    ids=["algorithm", "parameters", "observation"],
)
def test_a_shared_learner_refuses_a_different_setup(serve: Serve, request_: training_pb2.JoinRequest) -> None:
    transport = serve()
    ScriptedClient(transport, join_request("a", policy_id="fleet"))
    with pytest.raises(CallFailed, match="choose another policy_id") as failed:
        transport.join(request_, 10.0)
    assert failed.value.failure.reason is FailureReason.OTHER_LEARNER


def test_explicit_defaults_are_the_same_algorithm(serve: Serve) -> None:
    transport = serve()
    ScriptedClient(transport, join_request("a", policy_id="fleet"))
    spelled = PPO[1] | {"normalize_obs": False}
    assert transport.join(join_request("b", ("ppo", spelled), policy_id="fleet"), 10.0).learner == "shared~fleet"


def test_an_unknown_parameter_is_refused_with_a_suggestion_and_leaves_no_files(serve: Serve, tmp_path: Path) -> None:
    transport = serve()
    with pytest.raises(CallFailed, match="did you mean 'clip_ratio'") as failed:
        transport.join(join_request("a", ("PPO", {"algorithm": {"clip_ration": 0.1}})), 10.0)
    assert failed.value.code is Code.INVALID_ARGUMENT
    assert list((tmp_path / "data" / "learners").iterdir()) == []
    assert ScriptedClient(transport, join_request("a")).joined.learner == "a"


def test_a_client_name_that_escapes_the_data_directory_is_refused(serve: Serve) -> None:
    with pytest.raises(CallFailed) as failed:
        serve().join(join_request("../../etc"), 10.0)
    assert failed.value.code is Code.INVALID_ARGUMENT


def test_a_log_without_its_setup_is_never_overwritten(serve: Serve, tmp_path: Path) -> None:
    ScriptedClient(serve(), join_request("a")).push([0])
    transport = serve()
    ScriptedClient(transport, join_request("b"))
    transport._service.drain()
    setup = tmp_path / "data" / "learners" / "a" / "setup.json"
    setup.write_text("{}")
    transport = serve()
    with pytest.raises(CallFailed, match=r"setup\.json cannot be read.*Restore it"):
        transport.join(join_request("a"), 5.0)
    transport._service.drain()
    setup.unlink()
    transport = serve()
    with pytest.raises(CallFailed, match="is missing"):
        transport.join(join_request("a"), 5.0)
    assert ScriptedClient(transport, join_request("b")).joined.learner == "b"
    assert any((tmp_path / "data" / "learners" / "a" / "log").iterdir())


def test_an_unknown_session_has_to_join_again(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    client.joined.session = "forged"
    with pytest.raises(CallFailed, match="Join again") as failed:
        client.push([0])
    assert failed.value.failure.reason is FailureReason.UNKNOWN_SESSION


def test_the_server_decides_for_a_client_without_a_runtime(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    question = Question("agent", 0, 3, {"queue": np.ones((2, 3), np.float32)}, None, 2)
    message = encode_question(client.form, question, client.joined.session)
    first, second = (client.transport.act(message, 5.0) for _ in range(2))
    assert first == second
    version, decision = decode_decision(client.form, first, 2)
    assert version == 0
    assert decision.action.shape == (2,)


def test_status_counts_what_happened(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    client.push(range(4))
    client.push(range(2))
    client.push_bytes({9: b"junk"})
    eventually(lambda: status(client.transport).learners[0].updates == 1)
    reply = status(client.transport)
    learner, seen = reply.learners[0], reply.clients[0]
    assert (learner.stored_segments, learner.stored_steps, learner.episodes) == (4, 32, 4)
    assert (seen.stored_segments, seen.repeated_segments, dict(seen.refused_segments)) == (4, 2, {"MALFORMED": 1})
    assert learner.HasField("mean_return")
    assert reply.server.state == status_pb2.SERVER_STATE_SERVING
    assert reply.server.memory_bytes > 0


def test_a_push_with_a_changed_byte_is_answered_or_refused_and_never_fails_internally(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    pushed = [training_pb2.PushedSegment(sequence=n, segment=client.encoded(n)) for n in range(3)]
    whole = training_pb2.PushRequest(
        session=client.joined.session, epoch=1, schema_hash=client.joined.schema_hash, segments=pushed
    ).SerializeToString()
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(damaged))] = rng.integers(256)
        del damaged[len(damaged) - int(rng.integers(3)) :]
        try:
            client.transport.push(parse(training_pb2.PushRequest, bytes(damaged)), 5.0)
        except (CallFailed, ContractViolation):
            continue
    eventually(lambda: status(client.transport).learners[0].queued_segments == 0)
    assert status(client.transport).learners[0].problem == ""
