"""The share of episodes to record: computed for each learner, sent with every reply, and obeyed by clients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.client.agents import agent_on
from tests.server.clients import DQN, PPO, ScriptedClient, eventually, join_request
from tests.server.operators import Operator

from rl4sys.server import InProcessTransport
from rl4sys.server.learners.pacing import fresh_batch
from rl4sys.wire.generated import status_pb2, training_pb2

Serve = Callable[..., InProcessTransport]


def paused(transport: InProcessTransport, method: tuple[str, dict[str, object]] = PPO) -> ScriptedClient:
    """A client whose learner stores everything and learns nothing."""
    client = ScriptedClient(transport, join_request("a", method))
    Operator(transport).manage("a", "pause")
    return client


def status_of(transport: InProcessTransport) -> status_pb2.LearnerStatus:
    return transport.status(status_pb2.StatusRequest(), 5.0).learners[0]


def test_clients_of_a_learner_for_which_much_waits_are_asked_to_record_next_to_nothing(serve: Serve) -> None:
    client = paused(serve())
    assert client.joined.record_share == 1.0
    assert client.push(range(70)).record_share < 0.01
    assert ScriptedClient(client.transport, join_request("a")).joined.record_share < 0.01
    report = client.transport.report(training_pb2.ReportRequest(session=client.joined.session), 5.0)
    assert report.record_share < 0.01
    assert status_of(client.transport).record_share < 0.01


def test_they_record_again_when_the_learner_has_caught_up(serve: Serve) -> None:
    client = paused(serve())
    client.push(range(70))
    Operator(client.transport).manage("a", "resume")
    eventually(lambda: status_of(client.transport).record_share > 0.1)


def test_nothing_becomes_too_old_for_a_learner_that_replays(serve: Serve) -> None:
    client = paused(serve(), DQN)
    assert client.push(range(70)).record_share == 1.0


def test_a_share_that_was_lowered_is_sent_with_the_next_version(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    watching = iter(client.transport.watch(training_pb2.WatchRequest(session=client.joined.session, have=0)))
    client.push(range(4))
    assert 0.0 < next(watching).record_share <= 1.0


def test_an_agent_leaves_out_episodes_and_reports_how_many(serve: Serve) -> None:
    transport = serve()
    paused(transport).push(range(70))
    with agent_on(transport, client_id="a", observation={"queue": 3}, action=2) as agent:
        for _ in range(20):
            with agent.episode() as episode:
                episode.act([0.0, 0.0, 0.0])
                episode.end([0.0, 0.0, 0.0])
        health = agent.health()
    assert health.record_share < 0.01
    assert (health.thinned_episodes, health.unrecorded_decisions) == (19, 19)


@pytest.mark.parametrize(
    ("config", "batch"),
    [
        ('{"buffer": {"type": "trajectory", "size": 64}}', 64),
        ('{"buffer": {"type": "uniform", "size": 64}}', None),
        ("", None),
    ],
)
def test_only_a_buffer_of_trajectories_needs_fresh_experience(config: str, batch: int | None) -> None:
    assert fresh_batch(config) == batch
