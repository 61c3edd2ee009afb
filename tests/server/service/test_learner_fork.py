"""Forks are copies that learn the same from the same, and refolded ones learn again from the whole log."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.clients import DQN, PPO, SAC, ScriptedClient, acknowledged, eventually, join_request
from tests.server.operators import Operator
from tests.server.workers.test_fold import wait_for_version

from rl4sys.server import InProcessTransport, ServiceLimits, ServiceOptions
from rl4sys.server.access.caller import Caller, Role
from rl4sys.server.data_directory.forked_data import copy_present_state
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.wire.calls import CallFailed, Code

Serve = Callable[..., InProcessTransport]
Method = tuple[str, dict[str, Any]]
METHODS = pytest.mark.parametrize("method", [PPO, DQN, SAC], ids=lambda method: method[0])


def joined(transport: InProcessTransport, policy: str, method: Method | None = PPO) -> ScriptedClient:
    return ScriptedClient(transport, join_request("a", method, policy_id=policy))


def hosted(transport: InProcessTransport, policy: str) -> HostedLearner:
    learner = transport._service._learners.find(f"shared~{policy}")
    assert learner is not None
    return learner


def learn(client: ScriptedClient, sequences: range) -> int:
    """Push segments, and wait until they are learned; returns the version."""
    assert acknowledged(client.push(sequences)) == list(sequences)
    learner = hosted(client.transport, client.joined.learner.removeprefix("shared~"))
    eventually(lambda: not learner.inbox.unfolded and learner.version == learner.versions.highest)
    return learner.version


def learners(transport: InProcessTransport) -> list[str]:
    return [learner.name for learner in transport._service._learners.all()]


@METHODS
def test_a_fork_learns_the_same_bits_from_the_same_further_records(serve: Serve, method: Method) -> None:
    transport = serve()
    source = joined(transport, "x", method)
    version = learn(source, range(9))
    reply = Operator(transport).manage("shared~x", "fork", name="shared~y")
    assert "is a copy of 'shared~x' and continues from its present state" in reply.message
    copy = joined(transport, "y", method)
    assert (reply.lineage, copy.joined.lineage) == (hosted(transport, "y").lineage.id,) * 2
    assert copy.joined.lineage != source.joined.lineage
    wait_for_version(copy, version)
    np.testing.assert_array_equal(copy.weights(), source.weights())
    assert learn(source, range(9, 20)) == learn(copy, range(9, 20)) > version
    np.testing.assert_array_equal(copy.weights(), source.weights())


@METHODS
def test_a_log_that_is_refolded_without_changes_gives_the_same_bits(serve: Serve, method: Method) -> None:
    transport = serve()
    source = joined(transport, "x", method)
    version = learn(source, range(16))
    Operator(transport).manage("shared~x", "fork", name="shared~y", refold=True)
    copy = joined(transport, "y", method)
    wait_for_version(copy, version)
    np.testing.assert_array_equal(copy.weights(), source.weights())


def test_a_fork_continues_from_a_checkpoint_after_a_restart_of_both(serve: Serve) -> None:
    version = learn(joined(serve(), "x", DQN), range(12))
    transport = serve()
    Operator(transport).manage("shared~x", "fork", name="shared~y")
    copy = joined(transport, "y", DQN)
    assert (hosted(transport, "y").directory / "checkpoints").is_dir()
    transport = serve()
    source, copy = joined(transport, "x", DQN), joined(transport, "y", DQN)
    assert learn(source, range(12, 20)) == learn(copy, range(12, 20)) > version
    np.testing.assert_array_equal(copy.weights(), source.weights())


def test_segments_that_the_source_has_learned_from_are_repeats_for_the_fork(serve: Serve) -> None:
    transport = serve()
    learn(joined(transport, "x"), range(4))
    Operator(transport).manage("shared~x", "fork", name="shared~y")
    assert joined(transport, "y").push(range(4)).repeated_segments == 4


def test_changed_settings_of_a_fork_apply_to_what_follows(serve: Serve) -> None:
    transport = serve()
    source = joined(transport, "x")
    version = learn(source, range(8))
    Operator(transport).manage("shared~x", "fork", name="shared~y", changes={"algorithm.lr": "0.01"})
    copy = joined(transport, "y")
    wait_for_version(copy, version)
    np.testing.assert_array_equal(copy.weights(), source.weights())
    assert learn(source, range(8, 16)) == learn(copy, range(8, 16))
    assert not np.array_equal(copy.weights(), source.weights())
    assert json.loads(hosted(transport, "y").commands.settings)["algorithm"]["lr"] == 0.01


def test_a_refolded_fork_may_have_another_network_and_keeps_its_own_settings(serve: Serve) -> None:
    transport, operator = (transport := serve()), Operator(transport)
    learn(joined(transport, "x"), range(8))
    operator.manage("shared~x", "set", changes={"algorithm.lr": "0.01", "algorithm.epochs": "3"})
    changes = {"network.actor.hidden_dims": "[4, 4]", "algorithm.lr": "0.002"}
    operator.manage("shared~x", "fork", name="shared~y", refold=True, changes=changes)
    copy = joined(transport, "y", None)
    wait_for_version(copy, 2)
    eventually(lambda: not hosted(transport, "y").inbox.unfolded)
    settings = json.loads(hosted(transport, "y").commands.settings)
    assert settings["network"]["actor"]["hidden_dims"] == [4, 4]
    assert (settings["algorithm"]["lr"], settings["algorithm"]["epochs"]) == (0.002, 3)


@pytest.mark.parametrize(
    ("name", "changes", "refold", "problem"),
    [
        ("shared~x", {}, False, "There is a learner 'shared~x' already"),
        ("../x", {}, False, "The name of the copy is '../x'"),
        ("shared~", {}, False, "The name of the copy is"),
        ("shared~y", {"network.actor.hidden_dims": "[4]"}, False, "cannot change during the life of a learner"),
        ("shared~y", {"algorithm.lrr": "1"}, True, "lrr"),
        ("shared~y", {"algorithm.lrr": "1"}, False, "lrr"),
        ("shared~y", {"nothing.at.all": "1"}, True, "there is no group of settings"),
        ("shared~y", {"network.actor.hidden_dims": "[11000, 11000]"}, True, "limits.per_learner.weights"),
    ],
)
def test_a_fork_that_is_refused_leaves_nothing(
    serve: Serve, tmp_path: Path, name: str, changes: dict[str, str], refold: bool, problem: str
) -> None:
    transport = serve()
    learn(joined(transport, "x"), range(4))
    with pytest.raises(CallFailed, match=problem.replace("[", r"\[")) as failed:
        Operator(transport).manage("shared~x", "fork", name=name, refold=refold, changes=changes)
    assert failed.value.code in (Code.FAILED_PRECONDITION, Code.INVALID_ARGUMENT)
    assert learners(transport) == ["shared~x"]
    assert [each.name for each in (tmp_path / "data" / "learners").iterdir()] == ["shared~x"]


def test_a_pruned_log_cannot_be_refolded_and_can_be_forked(serve: Serve) -> None:
    transport = serve()
    source = joined(transport, "x")
    version = learn(source, range(8))
    learner = hosted(transport, "x")
    learner.inbox.is_full = True
    learner.make_room()
    eventually(lambda: learner.inbox.first_record > 0)
    with pytest.raises(CallFailed, match=r"begins with record 8.*Fork it without --refold"):
        Operator(transport).manage("shared~x", "fork", name="shared~y", refold=True)
    Operator(transport).manage("shared~x", "fork", name="shared~y")
    copy = joined(transport, "y")
    wait_for_version(copy, version)
    np.testing.assert_array_equal(copy.weights(), source.weights())


def test_forks_respect_quotas_owners_and_the_audit_log(serve: Serve) -> None:
    transport = serve(ServiceOptions("threads", limits=ServiceLimits(max_learners=2)))
    learn(joined(transport, "x"), range(4))
    caller = Caller(patterns=("x*", "y*"), policies=("x*", "y*"), token="t", role=Role.OPERATOR, name="ann")
    operator = Operator(transport, caller)
    with pytest.raises(CallFailed) as failed:
        operator.manage("shared~x", "fork", name="shared~z")
    assert failed.value.code is Code.PERMISSION_DENIED
    operator.manage("shared~x", "fork", name="shared~y")
    assert LearnerSetup.read(hosted(transport, "y").directory).owner == "t"
    with pytest.raises(CallFailed) as failed:
        operator.manage("shared~x", "fork", name="shared~y2")
    assert failed.value.code is Code.RESOURCE_EXHAUSTED
    results = [(each.command, each.who, each.result) for each in operator.audit("shared~x")]
    assert results == [("fork", "ann", each) for each in ("PERMISSION_DENIED", "OK", "RESOURCE_EXHAUSTED")]


def test_a_fork_is_consistent_while_its_source_learns_and_saves(serve: Serve) -> None:
    often = (DQN[0], DQN[1] | {"checkpoint_frequency": 10})
    transport = serve()
    source = joined(transport, "x", often)
    pushing = threading.Thread(target=lambda: [source.push([n]) for n in range(120)])
    pushing.start()
    for n in range(4):
        eventually(lambda n=n: hosted(transport, "x").inbox.stored.position > 20 * n)
        Operator(transport).manage("shared~x", "fork", name=f"shared~y{n}")
    pushing.join()
    for n in range(4):
        copy = joined(transport, f"y{n}", often)
        copy.push(range(120))
        wait_for_version(copy, learn(source, range(119, 120)))
        np.testing.assert_array_equal(copy.weights(), source.weights())


def test_a_fork_that_a_crash_interrupts_is_gone_after_the_restart(serve: Serve, tmp_path: Path) -> None:
    transport = serve()
    learn(joined(transport, "x"), range(4))
    source = hosted(transport, "x")
    copy = replace(source.setup, learner="shared~y")
    # As in a fork, but without the claim that ends it.
    transport._service._learners.add(copy, lambda place: copy_present_state(source.inbox, place, {}))
    assert learners(transport) == ["shared~x", "shared~y"]
    assert learners(serve()) == ["shared~x"]
    assert not (tmp_path / "data" / "learners" / "shared~y").exists()
