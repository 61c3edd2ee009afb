"""Decisions for many episodes at once are those of single decisions, recorded in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.client.agents import agent_on, seen
from tests.client.fake_server import FakeServer, small_policy, some_weights
from tests.client.test_bad_input import HUGE, relu_server
from tests.client.test_recording import shape_of
from tests.client.waiting import until
from tests.conformance.golden import HEADS

from rl4sys.client import Agent, BadObservation, Ending, Episode, EpisodeEnded
from rl4sys.experience import Segment
from rl4sys.policy import NoAllowedAction, PolicySpec
from rl4sys.weights import ModelStore
from rl4sys.wire import encode_segment

Act = Callable[[Agent, Sequence[Episode], Any, Any], list[Any]]
LANES = 5


def together(agent: Agent, episodes: Sequence[Episode], observations: Any, masks: Any) -> list[Any]:
    return agent.act_many(episodes, observations, masks)


def one_by_one(agent: Agent, episodes: Sequence[Episode], observations: Any, masks: Any) -> list[Any]:
    each = masks if masks is not None else [None] * len(episodes)
    return [episode.act(*row) for episode, *row in zip(episodes, observations, each, strict=True)]


def random_rows(server: FakeServer, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Five observations; masks allow the first choice at least."""
    rows = []
    for _ in range(LANES):
        row = {s.name: rng.integers(0, 255, s.shape).astype(s.dtype) for s in server.form.schema.observation}
        for mask in (array for array in row.values() if array.dtype == bool):
            mask[:] = rng.random(mask.shape) < 0.5
            mask[0] = True
        rows.append(row)
    return rows


def recorded(server: FakeServer, act: Act) -> tuple[list[bytes], list[bytes]]:
    """The actions of five episodes, and their segments but for the number of the episode, in bytes."""
    rng, chosen = np.random.default_rng(0), []
    with agent_on(server, observation=None, action=None, max_segment_length=4) as agent:
        episodes = [agent.episode() for _ in range(LANES)]
        for _ in range(9):
            actions = act(agent, episodes, random_rows(server, rng), None)
            chosen += [np.asarray(action).tobytes() for action in actions]
        for episode in episodes:
            episode.end()
    return chosen, sorted(segment_bytes(server, segment) for segment in server.segments())


def segment_bytes(server: FakeServer, segment: Segment) -> bytes:
    return bytes([segment.stream.lane]) + encode_segment(server.form, replace(segment, episode=0))


def server_of(spec: PolicySpec) -> FakeServer:
    server = FakeServer(spec)
    server.store = ModelStore(some_weights(spec))
    return server


@pytest.mark.parametrize("name", [name for name, case in HEADS.items() if case.spec.head.mask is None])
def test_every_head_chooses_and_records_the_same_bits(name: str) -> None:
    spec = HEADS[name].spec
    assert recorded(server_of(spec), together) == recorded(server_of(spec), one_by_one)


@pytest.mark.parametrize("options", [{"masked": True}, {"recurrent": True}, {"hidden": 64}])
def test_masks_and_memory_are_those_of_single_decisions(options: dict[str, Any]) -> None:
    spec = small_policy(**options)
    assert recorded(server_of(spec), together) == recorded(server_of(spec), one_by_one)


@pytest.mark.parametrize("count", [2, 20])
def test_the_rows_of_one_array_are_those_of_single_decisions(count: int) -> None:
    found = []
    for act in (together, one_by_one):
        server, rng = FakeServer(), np.random.default_rng(0)
        with agent_on(server) as agent:
            episodes = [agent.episode() for _ in range(count)]
            for _ in range(5):
                act(agent, episodes, rng.standard_normal((count, 8)).astype(np.float32), None)
            for episode in episodes:
                episode.end()
        found.append(sorted(segment_bytes(server, segment) for segment in server.segments()))
    assert found[0] == found[1]


def test_observations_may_be_an_array_or_named_arrays_with_masks() -> None:
    server = FakeServer(small_policy(masked=True))
    with agent_on(server, action_mask=True) as agent:
        episodes = [agent.episode() for _ in range(3)]
        masks = np.eye(4, dtype=bool)[1:]
        assert agent.act_many(episodes, np.zeros((3, 8), np.float32), masks) == [1, 2, 3]
        assert agent.act_many(episodes, {"observation": np.zeros((3, 8)), "action_mask": masks[::-1]}) == [3, 2, 1]


@pytest.mark.parametrize("bad", [np.full(8, np.nan), np.zeros(7), None, HUGE])
def test_a_bad_row_goes_to_the_fallback_alone(bad: Any) -> None:
    server = relu_server()
    with agent_on(server, lambda observation: 2) as agent, np.errstate(all="ignore"):
        episodes = [agent.episode() for _ in range(3)]
        for step in range(3):
            rows = [seen(step), bad if step == 1 else seen(step), seen(step)]
            actions = agent.act_many(episodes, rows)
            assert len(actions) == 3
        for episode in episodes:
            episode.end(seen(3))
        health = agent.health()
    assert (health.bad_inputs, health.fallback_decisions, health.unrecorded_decisions) == (1, 1, 1)
    assert sorted(s.steps for s in server.segments()) == [1, 1, 3, 3]


@pytest.mark.parametrize("bad", [np.full(8, np.nan), HUGE])
def test_where_a_bad_row_raises_nothing_is_decided(bad: Any) -> None:
    server = relu_server()
    with agent_on(server) as agent, np.errstate(all="ignore"):
        episodes = [agent.episode(), agent.episode()]
        with pytest.raises(BadObservation):
            agent.act_many(episodes, [seen(0), bad])
        assert [episode.decision for episode in episodes] == [-1, -1]
        agent.act_many(episodes, [seen(1), seen(2)])
        for episode in episodes:
            episode.end()
    assert [s.observation["observation"][0, 0] for s in server.segments()] == [1, 2]


def test_a_mask_that_allows_nothing_is_a_bad_row() -> None:
    with agent_on(FakeServer(small_policy(masked=True)), action_mask=True) as agent:
        episodes = [agent.episode(), agent.episode()]
        with pytest.raises(NoAllowedAction):
            agent.act_many(episodes, np.zeros((2, 8)), [[0, 0, 0, 0], [1, 1, 1, 1]])


def test_an_order_to_turn_off_is_obeyed_by_the_next_batch() -> None:
    server = FakeServer()
    with agent_on(server, lambda observation: 3) as agent:
        episodes = [agent.episode() for _ in range(4)]
        agent.act_many(episodes, np.zeros((4, 8)))
        server.give_order("off", 1)
        until(lambda: agent.health().off == "control")
        assert agent.act_many(episodes, np.zeros((4, 8))) == [3] * 4
        assert agent.health().fallback_decisions == 4


def test_new_weights_cut_the_segments_of_a_batch() -> None:
    server = FakeServer()
    with agent_on(server) as agent:
        episodes = [agent.episode() for _ in range(2)]
        for step in range(-2, 1):
            agent.act_many(episodes, [seen(step), seen(step)])
        server.publish(some_weights(server.spec, 1))
        until(lambda: agent.health().version == 1)
        for step in range(1, 4):
            agent.act_many(episodes, [seen(step), seen(step)])
        for episode in episodes:
            episode.end(seen(4))
    assert shape_of(server.segments())[:2] == [(0, 3, 0, Ending.CONTINUES), (3, 3, 1, Ending.TERMINATED)]


def test_episodes_that_cannot_be_batched_are_refused() -> None:
    with agent_on(FakeServer()) as agent, agent_on(FakeServer()) as other:
        first, ended = agent.episode(), agent.episode()
        ended.end()
        with pytest.raises(ValueError, match="twice"):
            agent.act_many([first, first], np.zeros((2, 8)))
        with pytest.raises(ValueError, match="3 observations for 1 episodes"):
            agent.act_many([first], np.zeros((3, 8)))
        for wrong in (ended, other.episode()):
            with pytest.raises(EpisodeEnded):
                agent.act_many([first, wrong], np.zeros((2, 8)))
