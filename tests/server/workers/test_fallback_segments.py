"""Segments that a fallback decided: learned from where experience is replayed, counted where it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.client.agents import agent_on
from tests.server.clients import DQN, PPO, SAC, ScriptedClient, eventually, join_request, synthetic_segment
from tests.server.operators import Operator
from tests.server.workers.test_fold import Method, local_learner, wait_for_version

from rl4sys.experience import DecidedBy
from rl4sys.server import InProcessTransport
from rl4sys.wire import encode_segment
from rl4sys.wire.generated import status_pb2

Serve = Callable[..., InProcessTransport]


def push_decided_by_fallback(client: ScriptedClient, count: int) -> None:
    made = (synthetic_segment(client.spec, client.name, sequence) for sequence in range(count))
    segments = [replace(segment, decided_by=DecidedBy.FALLBACK) for segment in made]
    client.push_bytes({n: encode_segment(client.form, segment) for n, segment in enumerate(segments)})


def status_of(transport: InProcessTransport) -> status_pb2.LearnerStatus:
    return transport.status(status_pb2.StatusRequest(), 5.0).learners[0]


@pytest.mark.parametrize(("method", "accepted"), [(PPO, False), (DQN, True), (SAC, True)], ids=["PPO", "DQN", "SAC"])
def test_joining_says_whether_decisions_of_a_fallback_are_of_use(serve: Serve, method: Method, accepted: bool) -> None:
    assert ScriptedClient(serve(), join_request("a", method)).joined.accepts_fallback is accepted


def test_a_learner_that_replays_learns_from_them_as_from_any_other(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a", DQN))
    push_decided_by_fallback(client, 20)
    expected = local_learner(DQN, 20).store.newest
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)
    eventually(lambda: not status_of(client.transport).queued_segments)
    assert status_of(client.transport).episodes == 0


def test_ppo_counts_them_as_unused_also_after_a_restart(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    push_decided_by_fallback(client, 6)
    eventually(lambda: dict(status_of(client.transport).unused_steps) == {"fallback": 48})
    transport = serve()
    eventually(lambda: dict(status_of(transport).unused_steps) == {"fallback": 48})
    assert status_of(transport).version == 0


def test_what_the_fallback_of_an_agent_decides_while_the_policy_is_off_is_learned(serve: Serve) -> None:
    transport = serve()
    ScriptedClient(transport, join_request("a", DQN))
    Operator(transport).control("a", "CONTROL_MODE_OFF", "test")
    settings = {"client_id": "a", "observation": {"queue": 3}, "action": 2}
    with agent_on(transport, fallback=lambda observation: 1, **settings) as agent:
        for _ in range(10):
            with agent.episode() as episode:
                for _ in range(5):
                    assert episode.act([0.0, 0.5, 1.0]) == 1
                    episode.reward(1.0)
                episode.end([0.0, 0.5, 1.0])
        assert agent.flush()
        assert agent.health().fallback_decisions == 50
    eventually(lambda: status_of(transport).learned_steps == 50 and status_of(transport).version > 0)
