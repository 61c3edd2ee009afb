"""What `act` does with numbers that a policy cannot use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer, small_policy
from tests.client.test_recording import shape_of

from rl4sys.client import BadObservation, Ending, Episode, FallbackFailed, SettingsError
from rl4sys.experience import ArraySpec
from rl4sys.policy import BoxAction, DiscreteAction, Head, PolicySpec, ProgramBuilder, layout_of
from rl4sys.weights import ModelStore
from rl4sys.wire import SegmentFormat

HUGE = np.full(8, 3e38, np.float32)
BAD = [np.full(8, np.nan), np.full(8, np.inf), np.zeros(7), None, {"queue": np.zeros(8)}, HUGE]


def relu_server(head: str = "categorical") -> FakeServer:
    """A policy in which huge observations overflow."""
    server = FakeServer(small_policy(kind="relu") if head == "categorical" else _policy(head))
    server.form = SegmentFormat.of(server.spec)
    server.store = ModelStore(np.ones(layout_of(server.spec.program).size, np.float32))
    return server


def _policy(head: str) -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("observation", "float32", (8,)),))
    if head == "gaussian":
        output = builder.linear(builder.activation(builder.linear("observation", 8, "a"), "relu"), 2, "b")
        std = builder.tensor("log_std", 2)
        return PolicySpec(BoxAction((-1.0,) * 2, (1.0,) * 2), builder.program(), Head("gaussian", (output,), (std,)))
    output = builder.linear(builder.activation(builder.linear("observation", 8, "a"), "relu"), 4, "b")
    return PolicySpec(DiscreteAction(4), builder.program(), Head("deterministic", (output,)))


def around(episode: Episode, bad: Any) -> Any:
    """Three good decisions, a bad one, two good ones, and the end."""
    with np.errstate(all="ignore"):
        steps(episode, 3)
        action = episode.act(bad)
        episode.reward(100.0)
        steps(episode, 2, first=4)
        episode.end(seen(6))
    return action


@pytest.mark.parametrize("bad", BAD)
def test_a_fallback_decides_and_only_that_decision_is_not_recorded(bad: Any) -> None:
    server = relu_server()
    with agent_on(server, lambda observation: 2) as agent:
        assert around(agent.episode(), bad) == 2
        health = agent.health()
        assert (health.bad_inputs, health.fallback_decisions, health.unrecorded_decisions) == (1, 1, 1)
        assert (health.drops, health.late_rewards) == ({}, 0)
    assert shape_of(server.segments()) == [(0, 3, 0, Ending.TRUNCATED), (4, 2, 0, Ending.TERMINATED)]
    first, second = server.segments()
    assert first.observation["observation"][:, 0].tolist() == [0, 1, 2, 2]
    assert [*first.reward, *second.reward] == [0, 1, 2, 4, 5]


@pytest.mark.parametrize("bad", BAD)
def test_without_a_fallback_one_clear_error_is_raised_and_nothing_changes(bad: Any) -> None:
    server = relu_server()
    with agent_on(server) as agent, agent.episode() as episode, np.errstate(all="ignore"):
        steps(episode, 2)
        with pytest.raises(BadObservation):
            episode.act(bad)
        steps(episode, 1, first=2)
        episode.end(seen(3))
        assert agent.health().bad_inputs == 1
    (segment,) = server.segments()
    assert segment.observation["observation"][:, 0].tolist() == [0, 1, 2, 3]


def test_hold_takes_the_last_action_again() -> None:
    server = relu_server()
    with agent_on(server, on_bad_input="hold") as agent, agent.episode() as episode:
        action = episode.act(seen(0))
        assert [episode.act(np.full(8, np.nan)) for _ in range(3)] == [action] * 3
        assert agent.health().fallback_decisions == 0


def test_hold_without_an_action_yet_asks_the_fallback_or_raises() -> None:
    with agent_on(FakeServer(), lambda observation: 3, on_bad_input="hold") as agent, agent.episode() as episode:
        assert episode.act(np.full(8, np.nan)) == 3
    with agent_on(FakeServer(), on_bad_input="hold") as agent, pytest.raises(BadObservation):
        agent.episode().act(np.full(8, np.nan))


def test_raise_can_be_chosen_although_there_is_a_fallback() -> None:
    with agent_on(FakeServer(), lambda observation: 3, on_bad_input="raise") as agent, pytest.raises(BadObservation):
        agent.episode().act(np.full(8, np.nan))


@pytest.mark.parametrize("head", ["categorical", "deterministic", "gaussian"])
def test_a_decision_that_is_not_finite_is_found_in_every_kind_of_policy(head: str) -> None:
    server = relu_server(head)
    action: Any = {"low": [-1, -1], "high": [1, 1]} if head == "gaussian" else 4
    with agent_on(server, action=action) as agent, agent.episode() as episode, np.errstate(all="ignore"):
        episode.act(seen(0))
        with pytest.raises(BadObservation, match="too large"):
            episode.act(HUGE)


@pytest.mark.parametrize(
    ("fallback", "problem"),
    [
        (lambda observation: 1 / 0, "raised ZeroDivisionError"),
        (lambda observation: 4, "whole number from 0 to 3"),
        (lambda observation: "left", "expected numbers of shape"),
        (lambda observation: [1, 2], "expected numbers of shape"),
        (lambda observation: 1.5, "whole number"),
        (lambda observation: None, "expected numbers"),
    ],
)
def test_a_fallback_that_fails_is_one_clear_error(fallback: Any, problem: str) -> None:
    with agent_on(FakeServer(), fallback) as agent, pytest.raises(FallbackFailed, match=problem):
        agent.episode().act(np.full(8, np.nan))


def test_left_out_arrays_have_their_defaults() -> None:
    builder = ProgramBuilder((ArraySpec("queue", "float32", (3,)), ArraySpec("load", "float32", (1,))))
    output = builder.linear(builder.joined(("queue", "load")), 4, "a")
    server = FakeServer(PolicySpec(DiscreteAction(4), builder.program(), Head("categorical", (output,))))
    settings = {"observation": {"queue": 3, "load": 1}, "defaults": {"load": 0.5, "queue": [1, 2, 3]}}
    with agent_on(server, **settings) as agent, agent.episode() as episode:
        episode.act({"queue": [4, 5, 6]})
        episode.act({"queue": None, "load": [0.25]})
        episode.end({})
    (segment,) = server.segments()
    assert segment.observation["queue"].tolist() == [[4, 5, 6], [1, 2, 3], [1, 2, 3]]
    assert segment.observation["load"].tolist() == [[0.5], [0.25], [0.5]]


@pytest.mark.parametrize("defaults", [{"load": 1}, {"queue": "x"}, {"queue": [1, 2]}, {"queue": float("nan")}])
def test_defaults_that_do_not_fit_are_refused(defaults: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="defaults"):
        agent_on(FakeServer(), observation={"queue": 3}, defaults=defaults)


def test_a_bad_final_observation_does_not_raise_with_a_fallback() -> None:
    server = FakeServer()
    with agent_on(server, lambda observation: 0) as agent:
        episode = agent.episode()
        steps(episode, 3)
        episode.end(np.full(8, np.nan), Ending.TRUNCATED)
        assert agent.health().bad_inputs == 1
    assert shape_of(server.segments()) == [(0, 2, 0, Ending.TRUNCATED)]


def test_many_bad_inputs_do_not_make_an_episode_grow() -> None:
    server = FakeServer()
    with agent_on(server, lambda observation: 0) as agent, agent.episode() as episode:
        for step in range(200):
            episode.act(seen(step) if step % 2 else np.full(8, np.nan))
            episode.reward(1.0)
        assert len(episode.record._gaps or ()) <= 16
        assert len(episode.record._held or ()) <= 16
        episode.end(seen(200))
        assert agent.health().bad_inputs == 100
    assert sum(segment.steps for segment in server.segments()) == 100


def test_a_fallback_is_needed_where_the_settings_ask_for_one() -> None:
    with pytest.raises(SettingsError, match="on_bad_input"):
        agent_on(FakeServer(), on_bad_input="fallback")
