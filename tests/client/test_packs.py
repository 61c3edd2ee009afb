"""Short episodes are sent in packs to servers that accept them, and alone to others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rl4sys.client import Agent
from rl4sys.experience import Segment
from rl4sys.wire.calls import CallFailed, Code

from .agents import agent_on, seen
from .fake_server import FakeServer


def bandits(agent: Agent, count: int) -> None:
    """One-step episodes; the k-th observes and earns k."""
    for number in range(count):
        episode = agent.episode()
        episode.act(seen(number))
        episode.reward(number)
        episode.end()


def rewards(server: FakeServer) -> list[float]:
    return [float(segment.reward[0]) for segment in server.segments()]


def counts(server: FakeServer) -> list[int]:
    return [max(1, pushed.count) for push in server.pushes for pushed in push.segments]


def waiting_agent(server: FakeServer, **settings: object) -> Agent:
    """Its segments wait for each other until they are flushed."""
    return agent_on(server, send_interval=30.0, **settings)


def test_short_episodes_that_wait_together_are_sent_as_one() -> None:
    server = FakeServer(max_pack_segments=1_000)
    with waiting_agent(server) as agent:
        bandits(agent, 200)
        assert agent.flush(10.0)
        health = agent.health()
    assert rewards(server) == list(range(200))
    assert max(counts(server)) > 50
    assert len(counts(server)) < 20
    assert (health.acknowledged, health.backlog) == (200, 0)


@pytest.mark.parametrize("most", [0, 3])
def test_a_server_that_accepts_no_such_packs_gets_each_segment_alone(most: int) -> None:
    server = FakeServer(max_pack_segments=most, max_push_segments=16)
    with waiting_agent(server) as agent:
        bandits(agent, 100)
        assert agent.flush(10.0)
        assert agent.health().acknowledged == 100
    assert set(counts(server)) <= {1, 2, 3}
    assert rewards(server) == list(range(100))
    assert sorted(sequence for _, _, sequence in server.stored) == list(range(100))


def test_a_refused_segment_of_a_pack_is_counted_alone() -> None:
    def bad(segment: Segment) -> int | None:
        return 7 if segment.reward[0] in (3.0, 60.0) else None

    server = FakeServer(max_pack_segments=1_000)
    server.refuse = bad  # type: ignore[assignment]  # a number stands for its name
    with waiting_agent(server) as agent:
        bandits(agent, 100)
        assert agent.flush(10.0)
        health = agent.health()
    assert (health.acknowledged, dict(health.drops)) == (98, {"reward_bounds": 2})


def test_a_segment_that_is_not_finite_is_dropped_and_the_others_are_sent() -> None:
    server = FakeServer(max_pack_segments=1_000)
    with waiting_agent(server) as agent:
        bandits(agent, 5)
        episode = agent.episode()
        episode.act(seen(5))
        with np.errstate(over="ignore"):
            episode.reward(3e38)
            episode.reward(3e38)
        episode.end()
        bandits(agent, 5)
        assert agent.flush(10.0)
        assert dict(agent.health().drops) == {"not_finite": 1}
    assert rewards(server) == [0, 1, 2, 3, 4] * 2


def test_packs_of_an_outbox_on_disk_reach_a_server_without_packs(tmp_path: Path) -> None:
    away = FakeServer(max_pack_segments=1_000)
    with waiting_agent(away, outbox=str(tmp_path)) as agent:
        bandits(agent, 60)
        away.before = lambda call: _fail() if call == "push" else None
        agent.close(timeout=0.0)
    assert away.stored == {}
    server = FakeServer(max_push_segments=7)
    with agent_on(server, outbox=str(tmp_path)) as later:
        assert later.flush(10.0)
        assert later.health().acknowledged == 60
    assert rewards(server) == list(range(60))


def _fail() -> None:
    raise CallFailed(Code.UNAVAILABLE, "away")


def test_long_segments_stay_alone_and_the_order_is_kept() -> None:
    server = FakeServer(max_pack_segments=1_000)
    with waiting_agent(server) as agent:
        bandits(agent, 3)
        episode = agent.episode()
        for step in range(40):
            episode.act(seen(step))
        episode.end()
        bandits(agent, 3)
        assert agent.flush(10.0)
    assert [segment.steps for segment in server.segments()] == [1, 1, 1, 40, 1, 1, 1]
