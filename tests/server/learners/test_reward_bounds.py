"""Absurd rewards of one client on a shared policy are refused and counted, and never fatal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.server.clients import PPO, ScriptedClient, acknowledged, eventually, join_request, synthetic_segment
from tests.server.operators import Operator

from rl4sys.server import InProcessTransport
from rl4sys.server.learners.reward_bounds import RewardBounds, bounds_of
from rl4sys.wire import RefusalReason, SegmentRefused, encode_segment
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2

Serve = Callable[..., InProcessTransport]


def joined(transport: InProcessTransport, name: str, **changes: object) -> ScriptedClient:
    return ScriptedClient(transport, join_request(name, (PPO[0], PPO[1] | changes), policy_id="fleet"))


def push_absurd(client: ScriptedClient, sequence: int, reward: float, version: int = 0) -> training_pb2.PushReply:
    segment = synthetic_segment(client.spec, client.name, sequence, version=version)
    rewards = segment.reward.copy()
    rewards[3] = reward
    return client.push_bytes({sequence: encode_segment(client.form, replace(segment, reward=rewards))})


def wait_for_version(client: ScriptedClient, version: int) -> None:
    eventually(lambda: client.transport.status(status_pb2.StatusRequest(), 5.0).learners[0].version >= version)


def test_a_segment_outside_the_bounds_is_refused_and_counted_for_its_client(serve: Serve) -> None:
    client = joined(serve(), "a", reward_bounds=[-10, 5])
    assert acknowledged(push_absurd(client, 0, 5.0)) == [0]
    reply = push_absurd(client, 1, 5.5)
    assert [(each.sequence, each.reason) for each in reply.refused] == [(1, training_pb2.REFUSAL_REASON_REWARD_BOUNDS)]
    assert "a reward of 5.5; this learner accepts -10 to 5 (reward_bounds)" in reply.refused[0].message
    (status,) = client.transport.status(status_pb2.StatusRequest(), 5.0).clients
    assert dict(status.refused_segments) == {"REWARD_BOUNDS": 1}


def test_an_operator_can_change_the_bounds_of_a_running_learner(serve: Serve) -> None:
    client = joined(serve(), "a")
    assert acknowledged(push_absurd(client, 0, 100.0)) == [0]
    Operator(client.transport).manage("shared~fleet", "set", changes={"reward_bounds": "[-10, 10]"})
    assert "accepts -10 to 10" in push_absurd(client, 1, 100.0).refused[0].message
    Operator(client.transport).manage("shared~fleet", "set", changes={"reward_bounds": "[-1000, 1000]"})
    assert acknowledged(push_absurd(client, 1, 100.0)) == [1]


def test_absurd_rewards_of_one_client_change_nothing_that_others_teach(serve: Serve) -> None:
    weights, transport = [], serve()
    for has_absurd_client in (False, True):
        policy = f"fleet-{has_absurd_client}"
        good = ScriptedClient(transport, join_request("good", PPO, policy_id=policy))
        bad = ScriptedClient(transport, join_request("bad", PPO, policy_id=policy))
        for n in range(12):
            if has_absurd_client:
                assert not push_absurd(bad, n, 1e30).acknowledged
            good.push([n])
        # Not when all is folded: the last version is announced a moment later, once it is archived.
        eventually(lambda name=f"shared~{policy}": _status(transport, name).version == 3)
        weights.append(good.weights())
    np.testing.assert_array_equal(*weights)


def _status(transport: InProcessTransport, learner: str) -> status_pb2.LearnerStatus:
    return transport.status(status_pb2.StatusRequest(learner=learner), 5.0).learners[0]


def test_updates_that_are_not_finite_do_not_end_a_shared_learner(serve: Serve) -> None:
    transport = serve()
    good, bad = (joined(transport, name, reward_bounds=None) for name in ("good", "bad"))
    for n in range(15 * 4):
        assert push_absurd(bad, n, 3e38).acknowledged
    eventually(lambda: not _status(transport, "shared~fleet").queued_segments)
    spoiled = _status(transport, "shared~fleet")
    assert spoiled.metrics["skipped_updates"] >= 10
    assert (spoiled.state, spoiled.version) == (status_pb2.LEARNER_STATE_WAITING, 0)
    good.push(range(4))
    wait_for_version(good, 1)


def test_bounds_in_the_wrong_order_are_refused(serve: Serve) -> None:
    with pytest.raises(CallFailed, match="reward_bounds") as failed:
        joined(serve(), "a", reward_bounds=[5, -10])
    assert failed.value.code is Code.INVALID_ARGUMENT


def test_without_bounds_in_a_config_they_are_very_wide() -> None:
    assert bounds_of("") == bounds_of("{}") == RewardBounds(-1e12, 1e12)
    assert bounds_of('{"reward_bounds": null}') is None


@pytest.mark.parametrize(("reward", "is_within"), [(-1.0, True), (2.0, True), (-1.1, False), (2.1, False)])
def test_bounds_include_their_ends(reward: float, is_within: bool) -> None:
    rewards = np.array([0.0, reward], np.float32)
    if is_within:
        RewardBounds(-1.0, 2.0).require(rewards, 0)
        return
    with pytest.raises(SegmentRefused) as refused:
        RewardBounds(-1.0, 2.0).require(rewards, 0)
    assert refused.value.reason is RefusalReason.REWARD_BOUNDS
