"""An episode for each request: many open at once, each with one step."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from tests.client.agents import agent_on, seen
from tests.client.fake_server import FakeServer
from tests.native import needs_native

from rl4sys.client import Agent, Ending, Episode

MANY = 3000
OBSERVED = seen(1)


def open_and_act(agent: Agent) -> list[Episode]:
    episodes = [agent.episode() for _ in range(MANY)]
    for episode in episodes:
        episode.act(OBSERVED)
        episode.reward(1.0)
    return episodes


@pytest.mark.parametrize(("runtime", "bytes_each"), [("numpy", 2048), pytest.param("native", 2560, marks=needs_native)])
def test_an_open_episode_with_one_step_takes_little_memory(runtime: str, bytes_each: int) -> None:
    with agent_on(FakeServer(), runtime=runtime) as agent:
        agent.episode().act(OBSERVED)
        gc.collect()
        tracemalloc.start()
        try:
            episodes = open_and_act(agent)
            gc.collect()
            taken, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(episodes) == MANY
    assert taken / MANY < bytes_each


def test_episodes_that_ended_leave_only_their_lanes_to_later_ones() -> None:
    server = FakeServer(max_push_segments=1000)
    with agent_on(server, send_interval=0.2) as agent:
        for _ in range(3):
            for episode in open_and_act(agent):
                episode.end(OBSERVED, Ending.TERMINATED)
            assert agent.health().open_episodes == 0
        assert agent.flush(30.0)
        assert agent.health().drops == {}
    lanes = {segment.stream.lane for segment in server.segments()}
    assert (len(server.segments()), len(lanes)) == (3 * MANY, MANY)


def test_one_step_episodes_are_sent_in_few_messages() -> None:
    server = FakeServer(max_push_segments=1000)
    with agent_on(server, send_interval=60.0) as agent:
        for episode in open_and_act(agent):
            episode.end(OBSERVED)
        assert agent.flush(30.0)
    assert len(server.pushes) < MANY / 20
