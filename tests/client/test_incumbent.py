"""Decisions that the system takes by itself, recorded with `took`."""

from __future__ import annotations

import numpy as np
import pytest
from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer, small_policy

from rl4sys.client import Agent, Ending, Episode
from rl4sys.client.action_adapter import BadAction
from rl4sys.client.observation_reader import BadObservation
from rl4sys.experience import DecidedBy
from rl4sys.wire.generated import training_pb2


def accepting(*, masked: bool = False) -> FakeServer:
    server = FakeServer(small_policy(masked=masked))
    server.reply = training_pb2.JoinReply(accepts_incumbent=True)
    return server


def take(episode: Episode, count: int, first: int = 0) -> None:
    """Step k observes k, chooses k mod 4 and earns k."""
    for step in range(first, first + count):
        episode.took(seen(step), step % 4)
        episode.reward(step)


def test_what_the_system_did_is_recorded_as_the_incumbents_between_decisions_of_the_policy() -> None:
    server = accepting()
    with agent_on(server) as agent, agent.episode() as episode:
        take(episode, 3)
        steps(episode, 2, first=3)
        take(episode, 2, first=5)
        episode.end(seen(7))
    first, middle, last = server.segments()
    assert [s.decided_by for s in (first, middle, last)] == [
        DecidedBy.INCUMBENT,
        DecidedBy.POLICY,
        DecidedBy.INCUMBENT,
    ]
    assert (first.action.tolist(), first.reward.tolist(), first.ending) == ([0, 1, 2], [0, 1, 2], Ending.CONTINUES)
    assert first.extras["log_prob"].tolist() == [0, 0, 0]
    assert (last.start, last.action.tolist(), last.ending) == (5, [1, 2], Ending.TERMINATED)
    assert last.observation["observation"][:, 0].tolist() == [5, 6, 7]


def test_a_server_that_does_not_know_it_is_not_sent_any() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        take(episode, 3)
        steps(episode, 2, first=3)
        episode.end(seen(5))
        assert agent.health().unrecorded_decisions == 3
    (segment,) = server.segments()
    assert (segment.start, segment.decided_by) == (3, DecidedBy.POLICY)


def test_it_draws_no_random_number() -> None:
    def actions(agent: Agent, *, takes: bool) -> list[int]:
        with agent.episode() as episode:
            if takes:
                take(episode, 3)
            return [episode.act(seen(step)) for step in range(8)]

    with agent_on(accepting()) as one, agent_on(accepting()) as other:
        assert actions(one, takes=True) == actions(other, takes=False)


@pytest.mark.parametrize("action", [4, -1, 1.5, [0, 1], "left", None])
def test_an_action_outside_the_space_is_refused_in_one_sentence(action: object) -> None:
    server = accepting()
    with agent_on(server) as agent, agent.episode() as episode:
        with pytest.raises(BadAction, match=r"^Got .*expected (a whole number from 0 to 3|numbers of shape \(\))\.$"):
            episode.took(seen(0), action)
        take(episode, 1)
        episode.end(seen(1))
    assert server.segments()[0].steps == 1


def test_an_action_that_its_mask_excludes_is_refused() -> None:
    server = accepting(masked=True)
    with agent_on(server, action_mask=True) as agent, agent.episode() as episode:
        with pytest.raises(BadAction, match="Got choice 2, which the mask excludes"):
            episode.took(seen(0), 2, mask=[1, 1, 0, 1])
        episode.took(seen(0), 2, mask=[0, 0, 1, 0])
        episode.end(seen(1))
    assert server.segments()[0].observation["action_mask"][0].tolist() == [False, False, True, False]


def test_a_bad_observation_raises_or_is_left_out_as_the_settings_say() -> None:
    bad = np.full(8, np.nan, np.float32)
    with agent_on(accepting()) as agent, agent.episode() as episode, pytest.raises(BadObservation):
        episode.took(bad, 0)
    server = accepting()
    with agent_on(server, lambda seen: 0, on_bad_input="fallback") as agent, agent.episode() as episode:
        take(episode, 2)
        episode.took(bad, 0)
        take(episode, 2, first=3)
        episode.end(seen(5))
    assert [(s.start, s.steps) for s in server.segments()] == [(0, 2), (3, 2)]
