from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer

from rl4sys.client import Agent, Episode, SettingsError, load_settings
from rl4sys.client.agent import Start


def test_rewards_add_up_on_the_latest_decision() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        episode.act(seen(0))
        episode.reward(1.0)
        episode.reward(np.float32(0.5))
        episode.act(seen(1))
        episode.end(seen(2))
    assert server.segments()[0].reward.tolist() == [1.5, 0.0]


def test_a_late_reward_reaches_its_decision_by_id() -> None:
    server = FakeServer()
    with agent_on(server, max_segment_length=2, reward_window=4) as agent, agent.episode() as episode:
        ids = []
        for step in range(5):
            episode.act(seen(step))
            ids.append(episode.decision)
        episode.reward(7.0, decision=ids[1])
        episode.end(seen(5))
        assert agent.health().late_rewards == 0
    rewards = [r for s in server.segments() for r in s.reward.tolist()]
    assert rewards == [0, 7, 0, 0, 0]


def test_a_reward_that_comes_too_late_is_counted() -> None:
    server = FakeServer()
    with agent_on(server, max_segment_length=2, reward_window=1) as agent, agent.episode() as episode:
        for step in range(6):
            episode.act(seen(step))
        episode.reward(7.0, decision=0)
        episode.end(seen(6))
        episode.reward(1.0)
        assert agent.health().late_rewards == 2
    assert sum(s.reward.sum() for s in server.segments()) == 0


def test_the_newest_decisions_are_held_back_for_late_rewards() -> None:
    server = FakeServer()
    with agent_on(server, max_segment_length=2, reward_window=3) as agent, agent.episode() as episode:
        for step in range(40):
            episode.act(seen(step))
            if step >= 3:
                episode.reward(step - 3, decision=step - 3)
        assert agent.health().late_rewards == 0
        episode.end(seen(40))
    rewards = [r for s in server.segments() for r in s.reward.tolist()]
    assert rewards == [*range(37), 0, 0, 0]


@pytest.mark.parametrize(("value", "decision"), [(float("nan"), None), (1.0, 5), (1.0, -1)])
def test_a_reward_without_a_decision_is_refused(value: float, decision: int | None) -> None:
    with agent_on(FakeServer()) as agent, agent.episode() as episode:
        episode.act(seen(0))
        with pytest.raises(ValueError, match=r"reward|decision"):
            episode.reward(value, decision)


def test_rewards_may_come_from_another_thread() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        episode.act(seen(0))
        threads = [
            threading.Thread(target=lambda: [episode.reward(1.0, decision=0) for _ in range(500)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for step in range(1, 200):
            episode.act(seen(step))
        for thread in threads:
            thread.join()
        episode.end(seen(200))
        late = agent.health().late_rewards
    assert server.segments()[0].reward[0] + late == 2000


class FakeClock:
    """Shows the time that it was set to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def agent_at(server: FakeServer, clock: FakeClock, **settings: object) -> Agent:
    """An agent with this clock, which has its policy."""
    values = {"client_id": "test", "observation": 8, "action": 4, "max_segment_length": 2, "send_interval": 0}
    agent = Agent(load_settings(values | settings), server, Start(1, 1, 0, clock))
    assert agent.wait_for_policy(5.0) is None
    return agent


def late_rewards(agent: Agent, episode: Episode, decision: int) -> int:
    episode.reward(7.0, decision)
    return agent.health().late_rewards


def test_a_window_in_seconds_takes_rewards_however_many_decisions_follow() -> None:
    server, clock = FakeServer(), FakeClock()
    with agent_at(server, clock, reward_window="30s") as agent, agent.episode() as episode:
        steps(episode, 100)
        clock.now += 29.0
        steps(episode, 100, first=100)
        assert late_rewards(agent, episode, 0) == 0
        episode.end(seen(200))
    assert server.segments()[0].reward.tolist() == [7.0, 1.0]


def test_rewards_after_the_window_in_seconds_are_late() -> None:
    server, clock = FakeServer(), FakeClock()
    with agent_at(server, clock, reward_window="30s") as agent, agent.episode() as episode:
        steps(episode, 3)
        clock.now += 30.0
        steps(episode, 1, first=3)
        assert late_rewards(agent, episode, 1) == 1
        assert late_rewards(agent, episode, 2) == 1


def test_time_alone_makes_no_reward_late_in_a_window_of_decisions() -> None:
    server, clock = FakeServer(), FakeClock()
    with agent_at(server, clock, reward_window=4) as agent, agent.episode() as episode:
        steps(episode, 3)
        clock.now += 3600.0
        steps(episode, 1, first=3)
        assert late_rewards(agent, episode, 0) == 0
        steps(episode, 3, first=4)
        assert late_rewards(agent, episode, 0) == 1


@pytest.mark.parametrize("value", ["30", "30 minutes", "-1s", -1, True, 1.5])
def test_a_window_is_a_number_of_decisions_or_a_time(value: object) -> None:
    with pytest.raises(SettingsError, match=r"reward_window: got .*such as 16, or a time, such as '30s'"):
        load_settings({"client_id": "test", "reward_window": value})
