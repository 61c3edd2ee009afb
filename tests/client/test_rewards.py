from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.client.agents import agent_on, seen
from tests.client.fake_server import FakeServer


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
