from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.clients import DQN, PPO, ScriptedClient, eventually, join_request
from tests.server.operators import Operator
from tests.server.service.test_operations import learner_status
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys.checkpoints import encode_state
from rl4sys.policy import PortablePolicy
from rl4sys.server import InProcessTransport
from rl4sys.server.access.caller import Caller, Role
from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2

Serve = Callable[..., InProcessTransport]


@pytest.fixture
def client(serve: Serve) -> ScriptedClient:
    return ScriptedClient(serve(), join_request("a"))


@pytest.fixture
def operator(client: ScriptedClient) -> Operator:
    return Operator(client.transport)


def test_a_changed_hyperparameter_survives_a_restart_with_equal_weights(
    serve: Serve, client: ScriptedClient, operator: Operator
) -> None:
    client.push(range(8))
    assert "learns with algorithm.lr=0.01" in operator.manage("a", "set", changes={"algorithm.lr": "0.01"}).message
    client.push(range(8, 16))
    wait_for_version(client, 4)
    weights = client.weights()
    again = ScriptedClient(serve(), join_request("a"))
    wait_for_version(again, 4)
    np.testing.assert_array_equal(again.weights(), weights)
    assert not np.array_equal(weights, local_learner(PPO, 16).store.newest.blob)
    again.push(range(16, 20))
    wait_for_version(again, 5)


def test_a_refused_change_stores_nothing(client: ScriptedClient, operator: Operator, tmp_path: Path) -> None:
    client.push(range(4))
    wait_for_version(client, 1)
    learner = client.transport._service._learners.find("a")
    position = learner.inbox.stored.position
    for changes in ({"network.actor.hidden_dims": "[4]"}, {"algorithm.lrr": "1"}, {"algorithm.lr": "nonsense"}, {}):
        with pytest.raises(CallFailed) as failed:
            operator.manage("a", "set", changes=changes)
        assert failed.value.code in (Code.FAILED_PRECONDITION, Code.INVALID_ARGUMENT)
    assert learner.inbox.stored.position == position
    assert [entry.result for entry in operator.audit()] == ["FAILED_PRECONDITION"] * 2 + ["INVALID_ARGUMENT"] * 2


def test_a_frozen_learner_stays_at_its_version(client: ScriptedClient, operator: Operator) -> None:
    client.push(range(4))
    wait_for_version(client, 1)
    operator.manage("a", "freeze")
    assert learner_status(client).frozen
    client.push(range(4, 12))
    eventually(lambda: learner_status(client).unused_steps["frozen"] == 64)
    assert learner_status(client).version == 1
    operator.manage("a", "unfreeze")
    client.push(range(12, 16), version=1)
    wait_for_version(client, 2)
    assert not learner_status(client).frozen


def test_a_command_for_a_paused_learner_waits(client: ScriptedClient, operator: Operator) -> None:
    operator.manage("a", "pause")
    client.push(range(4))
    assert "comes to it after the experience before it" in operator.manage("a", "freeze").message
    operator.manage("a", "resume")
    eventually(lambda: learner_status(client).frozen)
    wait_for_version(client, 1)


def test_an_exported_policy_is_read_back_and_installed_elsewhere(client: ScriptedClient, operator: Operator) -> None:
    client.push(range(8))
    wait_for_version(client, 2)
    data = operator.export("a")
    policy = PortablePolicy.from_bytes(data, Path("a.rl4sys"))
    assert (policy.version, policy.steps) == (2, 64)
    np.testing.assert_array_equal(policy.weights, client.weights())
    assert policy.exploit.head.kind != policy.explore.head.kind
    other = ScriptedClient(client.transport, join_request("b"))
    reply = operator.install("b", data)
    assert (reply.version, "acts with version 2 of a test" in reply.message) == (1, True)
    np.testing.assert_array_equal(other.weights(), client.weights())


def test_a_policy_with_another_program_is_refused(client: ScriptedClient, operator: Operator) -> None:
    ScriptedClient(client.transport, join_request("b", DQN))
    with pytest.raises(CallFailed, match=r"they differ in head, program\..*policy inspect") as failed:
        operator.install("a", operator.export("b"))
    assert failed.value.failure.reason is FailureReason.OTHER_LEARNER
    with pytest.raises(CallFailed, match="not a valid policy file"):
        operator.install("a", b"nonsense")
    assert learner_status(client).version == 0


def test_a_learner_continues_from_the_state_of_another(client: ScriptedClient, operator: Operator) -> None:
    source = local_learner(PPO, 12)
    state = source.state()
    wanted = {name: state[name] for name in ("algorithm", "observations", "rewards")}
    assert operator.install("a", encode_state(wanted), "STATE").version == 1
    np.testing.assert_array_equal(client.weights(), source.store.newest.blob)
    state = local_learner(DQN, 4).state()
    wanted = {name: state[name] for name in ("algorithm", "observations", "rewards")}
    with pytest.raises(CallFailed) as failed:
        operator.install("a", encode_state(wanted), "STATE")
    assert failed.value.code is Code.FAILED_PRECONDITION
    assert learner_status(client).version == 1


def test_a_reset_learner_starts_over_and_its_clients_follow(
    client: ScriptedClient, operator: Operator, tmp_path: Path
) -> None:
    first = client.weights()
    client.push(range(8))
    wait_for_version(client, 2)
    operator.control("a", training_pb2.CONTROL_MODE_FROZEN, "careful")
    watching = iter(client.transport.watch(training_pb2.WatchRequest(session=client.joined.session, have=2)))
    reply = operator.manage("a", "reset")
    for call in (lambda: next(watching), lambda: client.push([8])):
        with pytest.raises(CallFailed) as failed:
            call()
        assert failed.value.failure.reason is FailureReason.UNKNOWN_SESSION
    again = ScriptedClient(client.transport, join_request("a"))
    assert again.joined.lineage == reply.lineage != client.joined.lineage
    assert list(again.joined.replaced_lineages) == [client.joined.lineage]
    assert (again.joined.version, again.joined.control.reason) == (0, "careful")
    np.testing.assert_array_equal(again.weights(), first)
    assert again.push([0]).repeated_segments == 0
    (aside,) = (tmp_path / "data" / "deleted").iterdir()
    assert aside.name.startswith("a-2")
    assert (aside / "log").is_dir()


def test_a_deleted_learner_is_moved_aside_and_gone(
    serve: Serve, client: ScriptedClient, operator: Operator, tmp_path: Path
) -> None:
    client.push(range(4))
    operator.manage("a", "delete")
    assert not client.transport.status(status_pb2.StatusRequest(), 5.0).learners
    with pytest.raises(CallFailed, match="unknown") as failed:
        client.push([4])
    assert failed.value.failure.reason is FailureReason.UNKNOWN_SESSION
    assert not serve().status(status_pb2.StatusRequest(), 5.0).learners
    (aside,) = (tmp_path / "data" / "deleted").iterdir()
    assert json.loads((aside / "setup.json").read_text())["learner"] == "a"


def test_a_purged_learner_leaves_nothing(client: ScriptedClient, operator: Operator, tmp_path: Path) -> None:
    operator.manage("a", "delete", purge=True)
    assert list((tmp_path / "data" / "learners").iterdir()) == []
    assert list((tmp_path / "data" / "deleted").iterdir()) == []


def test_a_restarted_learner_continues(client: ScriptedClient, operator: Operator) -> None:
    client.push(range(8))
    wait_for_version(client, 2)
    operator.manage("a", "restart")
    client.push(range(8, 16))
    wait_for_version(client, 4)
    np.testing.assert_array_equal(client.weights(), local_learner(PPO, 16).store.newest.blob)


def test_a_learner_that_cannot_be_opened_can_be_restarted_or_deleted(
    serve: Serve, client: ScriptedClient, tmp_path: Path
) -> None:
    setup = tmp_path / "data" / "learners" / "a" / "setup.json"
    client.transport._service.drain()
    sound = setup.read_bytes()
    setup.write_text("{}")
    operator = Operator(serve())
    with pytest.raises(CallFailed, match="can only be restarted or deleted"):
        operator.manage("a", "pause")
    with pytest.raises(CallFailed, match="still cannot be opened"):
        operator.manage("a", "restart")
    setup.write_bytes(sound)
    assert operator.manage("a", "restart").message == "The learner 'a' is open again."
    operator.manage("a", "delete")
    assert not setup.exists()


def test_clients_of_another_lineage_follow_when_an_operator_accepts(client: ScriptedClient, operator: Operator) -> None:
    request = join_request("b", policy_id="", method=PPO)
    request.client, request.policy_id = "b", ""
    other = ScriptedClient(client.transport, request)
    report = training_pb2.ReportRequest(session=other.joined.session)
    report.report.lineage, report.report.version = "feedfeedfeedfeed", 7
    client.transport.report(report, 5.0)
    assert (
        client.transport.status(status_pb2.StatusRequest(learner="b"), 5.0).learners[0].other_lineages[0].version == 7
    )
    assert "1 clients of 'b'" in operator.manage("b", "accept").message
    assert "feedfeedfeedfeed" in client.transport.join(request, 5.0).replaced_lineages


@pytest.mark.parametrize("role", [Role.VIEWER, Role.CLIENT])
def test_nothing_is_exported_or_installed_without_the_role(client: ScriptedClient, role: Role) -> None:
    other = Operator(client.transport, Caller(role=role, token="t1"))
    commands: list[Callable[[], Any]] = [lambda: other.export("a"), lambda: other.install("a", b"")]
    commands += [lambda name=name: other.manage("a", name) for name in ("reset", "delete", "freeze", "restart")]
    for command in commands:
        with pytest.raises(CallFailed) as failed:
            command()
        assert failed.value.code is Code.PERMISSION_DENIED
    assert len(Operator(client.transport).audit()) == 6
    assert learner_status(client).state == status_pb2.LEARNER_STATE_WAITING
