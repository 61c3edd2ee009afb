"""Times of decisions, which only systems that pass `now` have."""

from __future__ import annotations

import pytest
from tests.client.agents import agent_on, seen
from tests.client.fake_server import FakeServer

from rl4sys.client import Ending, SettingsError, load_settings
from rl4sys.wire import encode_segment


def elapsed(server: FakeServer) -> list[list[float] | None]:
    return [None if s.elapsed is None else s.elapsed.tolist() for s in server.segments()]


def test_the_time_between_decisions_is_recorded_with_the_first_of_them() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        for step, now in enumerate((5.0, 5.25, 7.25)):
            episode.act(seen(step), now=now)
        episode.end(seen(3), Ending.TRUNCATED, now=8.25)
    assert elapsed(server) == [[0.25, 2.0, 1.0]]


def test_without_times_bytes_are_those_of_earlier_versions() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        episode.act(seen(0))
        episode.end(seen(1))
    (data,) = server.stored.values()
    assert elapsed(server) == [None]
    assert encode_segment(server.form, server.segments()[0]) == data


def test_a_buffer_that_had_times_is_reused_without_them() -> None:
    server = FakeServer()
    with agent_on(server, reward_window=0) as agent:
        for now in (1.0, None):
            with agent.episode() as episode:
                for step in range(6):
                    episode.act(seen(step), now=None if now is None else now + step)
                episode.end(seen(6))
    assert elapsed(server) == [[1, 1, 1, 1, 1, 0], None]


def test_many_episodes_at_once_have_one_time() -> None:
    server = FakeServer()
    with agent_on(server) as agent:
        episodes = [agent.episode() for _ in range(3)]
        for step in range(3):
            agent.act_many(episodes, [seen(step)] * 3, now=10.0 + 2 * step)
        for episode in episodes:
            episode.end(seen(3), now=15.0)
        assert agent.flush()
    assert elapsed(server) == [[2.0, 2.0, 1.0]] * 3


@pytest.mark.parametrize(
    ("times", "problem"),
    [
        ((2.0, 1.0), "Got now=1.0 after 2.0; time does not go backwards. Use a monotonic clock."),
        ((2.0, None), "Got no time; earlier decisions of this episode had one. Pass now with every decision."),
        ((None, 2.0), "Got now=2.0, but earlier decisions of this episode had no time. Pass it with all."),
        ((2.0, float("nan")), "Got now=nan; expected seconds, a finite number."),
    ],
)
def test_a_time_that_makes_no_sense_is_refused_and_changes_nothing(
    times: tuple[float | None, float | None], problem: str
) -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        episode.act(seen(0), now=times[0])
        with pytest.raises(ValueError, match="Got") as refused:
            episode.act(seen(1), now=times[1])
        assert str(refused.value) == problem
        assert episode.decision == 0
        episode.end(seen(1))
    assert server.segments()[0].steps == 1


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"reward_timeout": 5}, "reward_timeout: got 5; expected a time with its unit, such as '5s'"),
        ({"reward_timeout": "-5s"}, "expected a time with its unit"),
        ({"reward_timeout": "5s", "reward_window": 4}, "Leave one out"),
    ],
)
def test_a_timeout_is_a_time_and_stands_alone(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        load_settings({"client_id": "a"} | settings)


def test_an_endless_task_sends_settled_decisions_while_it_runs() -> None:
    server = FakeServer()
    with agent_on(server, reward_timeout="60s") as agent, agent.episode() as episode:
        for step in range(40):
            episode.act(seen(step))
            if step >= 2:
                episode.reward(1.0, step - 2, final=True)
            if step == 36:
                for decision in (35, 36):
                    episode.reward(1.0, decision, final=True)
        assert agent.flush()
        assert [(s.start, s.steps, s.reward.sum()) for s in server.segments()] == [(0, 37, 37.0)]
