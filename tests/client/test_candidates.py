"""Choosing one of some number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.client.agents import agent_on
from tests.client.fake_server import FakeServer
from tests.networks.test_candidates import FEATURES, MOST, policy, weights

from rl4sys.client import Agent, BadObservation, Ending, SettingsError
from rl4sys.client.action_adapter import BadAction
from rl4sys.client.fallback import Fallback, FallbackDecider, FallbackFailed
from rl4sys.client.settings import parse_settings
from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import CANDIDATES, COUNT, MASK, DiscreteAction, candidate_arrays
from rl4sys.weights import ModelStore
from rl4sys.wire import SegmentFormat
from rl4sys.wire.generated import training_pb2

CONTEXT = np.zeros(2, np.float32)


def candidate_server(*more: ArraySpec) -> FakeServer:
    server = FakeServer(policy("categorical", *more))
    server.form = SegmentFormat.of(server.spec)
    server.store = ModelStore(weights(server.spec))
    return server


def chooser(server: FakeServer, fallback: Fallback | None = None, **settings: Any) -> Agent:
    spaces = {"candidates": [MOST, FEATURES], "observation": {"context": 2}, "action": None}
    return agent_on(server, fallback, **(spaces | settings))


def rows(count: int) -> Array:
    return np.random.default_rng(count).normal(size=(count, FEATURES)).astype(np.float32)


def test_act_takes_any_number_of_rows_and_returns_the_index_of_one() -> None:
    server = candidate_server()
    with chooser(server) as agent, agent.episode() as episode:
        for count in (3, 1, MOST, 2):
            assert 0 <= episode.act({CANDIDATES: rows(count).tolist(), "context": CONTEXT}) < count
            episode.reward(1.0)
        episode.end({CANDIDATES: [], "context": CONTEXT}, Ending.TERMINATED)
    (segment,) = server.segments()
    assert segment.observation[COUNT][:, 0].tolist() == [3, 1, MOST, 2, 0]
    np.testing.assert_array_equal(segment.observation[CANDIDATES][0, :3], rows(3))
    assert not segment.observation[CANDIDATES][3, 2:].any()


def test_a_mask_may_have_one_entry_for_each_candidate() -> None:
    with (
        chooser(candidate_server(ArraySpec(MASK, "bool", (MOST,))), action_mask=True) as agent,
        agent.episode() as episode,
    ):
        for _ in range(20):
            assert episode.act({CANDIDATES: rows(4), "context": CONTEXT}, [False, False, True, False]) == 2


def test_an_array_of_fixed_size_may_be_passed_with_the_number_of_its_rows_that_count() -> None:
    server = candidate_server()
    with chooser(server) as agent, agent.episode() as episode:
        assert episode.act({CANDIDATES: np.ones((MOST, FEATURES)), COUNT: 1, "context": CONTEXT}) == 0
        with pytest.raises(BadObservation, match="pass how many of them count"):
            episode.act({CANDIDATES: np.ones((2, FEATURES)), COUNT: 3, "context": CONTEXT})
        episode.end({CANDIDATES: rows(2), "context": CONTEXT})
    (segment,) = server.segments()
    assert segment.observation[COUNT][:, 0].tolist() == [1, 2]
    assert not segment.observation[CANDIDATES][0, 1:].any()


BAD = {
    "no candidates": np.zeros((0, FEATURES)),
    "chooses among 6 at most": np.zeros((MOST + 1, FEATURES)),
    "rows of 3 features": np.zeros((2, FEATURES + 1)),
    "NaN or infinity": np.full((2, FEATURES), np.nan),
    "expected numbers": np.full((2, FEATURES), "a"),
}


@pytest.mark.parametrize("problem", BAD)
def test_rows_that_cannot_be_used_are_one_clear_sentence(problem: str) -> None:
    with chooser(candidate_server()) as agent, agent.episode() as episode:
        with pytest.raises(Exception, match=problem):
            episode.act({CANDIDATES: BAD[problem], "context": CONTEXT})
        assert episode.act({CANDIDATES: rows(1), "context": CONTEXT}) == 0


@pytest.mark.parametrize("problem", BAD)
def test_the_fallback_decides_where_rows_cannot_be_used(problem: str) -> None:
    with chooser(candidate_server(), lambda observation: 1) as agent, agent.episode() as episode:
        assert episode.act({CANDIDATES: BAD[problem], "context": CONTEXT}) == 1
        assert agent.health().bad_inputs == 1


def test_settings_describe_candidates_context_and_mask() -> None:
    settings = parse_settings({"candidates": [16, 4], "observation": {"load": 2}, "action_mask": True})
    load, mask = ArraySpec("load", "float32", (2,)), ArraySpec(MASK, "bool", (16,))
    assert settings.observation == (*candidate_arrays(16, 4), load, mask)
    assert settings.action == DiscreteAction(16)


@pytest.mark.parametrize("values", [{"candidates": 5}, {"candidates": [0, 2]}, {"candidates": [4, 2], "action": 5}])
def test_settings_that_contradict_each_other_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="candidates"):
        parse_settings(values)


def test_a_choice_that_is_not_among_the_candidates_is_refused() -> None:
    server = candidate_server()
    server.reply = training_pb2.JoinReply(accepts_incumbent=True)
    with chooser(server) as agent, agent.episode() as episode:
        with pytest.raises(BadAction, match="Got choice 2 of 2 candidates"):
            episode.took({CANDIDATES: rows(2), "context": CONTEXT}, 2)
        episode.took({CANDIDATES: rows(2), "context": CONTEXT}, 1)
        assert agent.health().incumbent_decisions == 1
        episode.end({CANDIDATES: [], "context": CONTEXT}, Ending.TERMINATED)
    assert server.segments()[0].action.ravel().tolist() == [1]


def test_a_fallback_that_chooses_no_candidate_is_refused() -> None:
    observation = {CANDIDATES: rows(2), "context": CONTEXT}
    with chooser(candidate_server(), lambda seen: 2) as agent, agent.episode() as episode:
        agent.level = "off"
        with pytest.raises(FallbackFailed, match="Got choice 2 of 2 candidates"):
            episode.act(observation)
        with pytest.raises(FallbackFailed, match="Got choice 2 of 1 candidates"):
            episode.act({CANDIDATES: np.ones((MOST, FEATURES)), COUNT: 1, "context": CONTEXT})
        assert agent.health().fallback_decisions == 0


def test_a_fallback_is_checked_before_the_first_policy() -> None:
    observation = (*candidate_arrays(MOST, FEATURES), ArraySpec("context", "float32", (2,)))
    decider = FallbackDecider(lambda seen: 3, DiscreteAction(MOST), None, observation)
    assert decider.decide({CANDIDATES: rows(4), "context": CONTEXT}, None, None)[0] == 3
    with pytest.raises(FallbackFailed, match="Got choice 3 of 3 candidates"):
        decider.decide({CANDIDATES: rows(3).tolist(), "context": CONTEXT}, None, None)
