from __future__ import annotations

import numpy as np
import pytest
from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer, small_policy, some_weights
from tests.client.waiting import until

from rl4sys.client import BadObservation, ConnectError, Ending, EpisodeEnded
from rl4sys.experience import Segment
from rl4sys.policy import KeyedNoise, NoAllowedAction, NumpyPolicy, kernel_set, run_policy


def shape_of(segments: list[Segment]) -> list[tuple[int, int, int, Ending]]:
    return [(s.start, s.steps, s.policy_version, s.ending) for s in segments]


def test_an_episode_arrives_as_it_happened() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        steps(episode, 5)
        episode.end(seen(5), Ending.TERMINATED)
    (segment,) = server.segments()
    assert segment.observation["observation"][:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert segment.reward.tolist() == [0, 1, 2, 3, 4]
    assert segment.ending is Ending.TERMINATED


def test_decisions_are_those_of_the_policy_with_keyed_noise() -> None:
    server = FakeServer()
    with agent_on(server, seed=5) as agent, agent.episode() as episode:
        chosen = [episode.act(seen(step)) for step in range(20)]
    (segment,) = server.segments()
    policy, noise = NumpyPolicy(server.spec, some_weights(server.spec)), KeyedNoise(5, [segment.stream], 1)
    expected = [policy.act({"observation": seen(s)[None]}, noise.at(s)).action.item() for s in range(20)]
    assert chosen == expected
    assert segment.action.tolist() == expected[:19]


def test_a_long_episode_is_cut_and_continues() -> None:
    server = FakeServer()
    with agent_on(server, max_segment_length=4, reward_window=0) as agent, agent.episode() as episode:
        steps(episode, 10)
        episode.end(seen(10))
    first, second, third = server.segments()
    assert [s.steps for s in (first, second, third)] == [4, 4, 2]
    assert second.follows(first)
    assert third.follows(second)
    assert second.observation["observation"][:, 0].tolist() == [4, 5, 6, 7, 8]


def test_the_server_may_ask_for_shorter_segments() -> None:
    server = FakeServer(max_segment_steps=3)
    with agent_on(server) as agent, agent.episode() as episode:
        steps(episode, 7)
        episode.end(seen(7))
    assert [s.steps for s in server.segments()] == [3, 3, 1]


def test_a_segment_fits_into_one_message() -> None:
    server = FakeServer(max_message_bytes=64 << 10, max_segment_steps=1 << 16)
    with agent_on(server, max_segment_length=10_000) as agent, agent.episode() as episode:
        for step in range(3_000):
            episode.act(seen(step))
        episode.end(seen(3_000))
        assert agent.flush()
        assert agent.health().drops == {}
    assert sum(s.steps for s in server.segments()) == 3_000


def test_an_observation_too_large_for_any_message_is_refused_at_once() -> None:
    server = FakeServer(small_policy(sees=20_000), max_message_bytes=64 << 10)
    with pytest.raises(ConnectError, match="Observe less"):
        agent_on(server, observation=20_000)


def test_new_weights_cut_a_segment_so_that_each_has_one_version() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        steps(episode, 3)
        server.publish(some_weights(server.spec, 1))
        until(lambda: agent.health().version == 1)
        steps(episode, 2, first=3)
        episode.end(seen(5))
    assert shape_of(server.segments()) == [(0, 3, 0, Ending.CONTINUES), (3, 2, 1, Ending.TERMINATED)]


def test_leaving_with_truncates_the_episode_before_its_last_decision() -> None:
    server = FakeServer()
    with agent_on(server) as agent:
        with agent.episode() as episode:
            steps(episode, 4)
        assert agent.health().drops == {"no_final_observation": 1}
    (segment,) = server.segments()
    assert (segment.steps, segment.ending) == (3, Ending.TRUNCATED)
    assert segment.observation["observation"][-1, 0] == 3


def test_a_truncation_with_its_final_observation_keeps_every_step() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        steps(episode, 4)
        episode.end(seen(4), Ending.TRUNCATED)
    assert shape_of(server.segments()) == [(0, 4, 0, Ending.TRUNCATED)]


def test_open_episodes_have_their_own_lanes_which_are_reused() -> None:
    server = FakeServer()
    with agent_on(server) as agent:
        first, second = agent.episode(), agent.episode()
        for step in range(3):
            steps(first, 1, step)
            steps(second, 1, 100 + step)
        first.end(seen(3))
        third = agent.episode()
        steps(third, 1)
        third.end(seen(1))
        second.end(seen(103))
    found = {(s.stream.lane, s.episode) for s in server.segments()}
    lanes = sorted(lane for lane, _ in found)
    assert lanes == [0, 0, 1]
    assert len(found) == 3


def test_a_segment_contains_the_policy_memory() -> None:
    server = FakeServer(small_policy(recurrent=True))
    with agent_on(server, max_segment_length=3) as agent, agent.episode() as episode:
        steps(episode, 6)
        episode.end(seen(6))
    first, second = server.segments()
    (name,) = first.carry
    assert not first.carry[name].any()
    policy = run_policy(server.spec, some_weights(server.spec), kernel_set())
    carry = policy.initial_carry(1)
    for step in range(3):
        decision = policy.act({"observation": seen(step)[None]}, np.zeros((1, 1), np.float32), carry)
        carry = {key: array.copy() for key, array in decision.carry.items()}
    np.testing.assert_array_equal(second.carry[name], carry[name][0])


def test_decisions_with_memory_equal_local_ones_across_new_versions() -> None:
    server = FakeServer(small_policy(recurrent=True))
    weights = {number: some_weights(server.spec, number) for number in range(5)}
    with agent_on(server, seed=5, max_segment_length=900) as agent, agent.episode() as episode:
        for number in range(5):
            if number:
                published = server.publish(weights[number])
                until(lambda: agent.health().version == published)  # noqa: B023  # called within this round
            steps(episode, 2_000)
        episode.end(seen(0))
    segments = server.segments()
    policy, noise = NumpyPolicy(server.spec), KeyedNoise(5, [segments[0].stream], 1)
    carry = policy.initial_carry(1)
    for segment in segments:
        policy.load(weights[segment.policy_version])
        for row in range(segment.steps):
            decision = policy.act(
                {"observation": segment.observation["observation"][row : row + 1]}, noise.at(segment.start + row), carry
            )
            carry = {name: memory.copy() for name, memory in decision.carry.items()}
            assert decision.action.item() == segment.action[row]
    assert sum(segment.steps for segment in segments) == 10_000
    assert {segment.policy_version for segment in segments} == set(weights)


def test_a_mask_is_respected_and_recorded() -> None:
    server = FakeServer(small_policy(masked=True))
    with agent_on(server, action_mask=True) as agent, agent.episode() as episode:
        assert episode.act(seen(0), mask=[0, 0, 1, 0]) == 2
        assert episode.act({"observation": seen(1), "action_mask": np.array([False, True, False, False])}) == 1
        episode.act(seen(2))
        episode.end(seen(3))
    (segment,) = server.segments()
    assert segment.observation["action_mask"].sum(1).tolist() == [1, 1, 4, 4]


class Tensor:
    """As a torch tensor that needs a gradient looks to those who do not import torch."""

    def __init__(self, values: list[float]) -> None:
        self._values = values

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return np.array(self._values)


@pytest.mark.parametrize("kind", [list, tuple, np.array, Tensor, lambda v: {"observation": v}])
def test_observations_may_be_arrays_lists_or_tensors(kind: type) -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        episode.act(kind([float(value) for value in range(8)]))
        episode.end(kind([0.0] * 8))
    assert server.segments()[0].observation["observation"][0].tolist() == list(range(8))


@pytest.mark.parametrize(
    "wrong", [np.zeros(7), np.zeros((1, 8)), 3.0, {"queue": np.zeros(8)}, ["a"] * 8, None, np.full(8, np.nan)]
)
def test_a_wrong_observation_is_refused_and_changes_nothing(wrong: object) -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        episode.act(seen(0))
        with pytest.raises(BadObservation):
            episode.act(wrong)
        episode.act(seen(1))
        episode.end(seen(2))
    assert server.segments()[0].observation["observation"][:, 0].tolist() == [0, 1, 2]


def test_an_episode_that_ended_does_not_act() -> None:
    with agent_on(FakeServer()) as agent:
        episode = agent.episode()
        episode.end()
        episode.end()
        with pytest.raises(EpisodeEnded):
            episode.act(seen(0))


def test_segments_with_infinite_rewards_are_dropped_and_counted() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        episode.act(seen(0))
        with np.errstate(over="ignore"):
            for _ in range(2):
                episode.reward(3e38)
        episode.end(seen(1))
        until(lambda: agent.health().drops == {"not_finite": 1})
    assert server.segments() == []


def test_a_mask_that_forbids_everything_loses_no_complete_segment() -> None:
    server = FakeServer(small_policy(masked=True))
    with agent_on(server, max_segment_length=2, reward_window=0, action_mask=True) as agent, agent.episode() as episode:
        for step in range(2):
            episode.act(seen(step))
        # The third observation completes the first segment, which can now be sent.
        with pytest.raises(NoAllowedAction):
            episode.act(seen(2), mask=[False] * 4)
        episode.act(seen(2))
        episode.end(seen(3))
    assert [s.steps for s in server.segments()] == [2, 1]
