"""Observations with candidates, whose number differs from step to step."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from rl4sys.environments import Grade, ObservationMismatch, UnsupportedSpace, random_action
from rl4sys.environments.candidate_choice import CandidateChoice
from rl4sys.environments.lanes import Lanes
from rl4sys.environments.spaces import ObservationConverter
from rl4sys.environments.vector import VectorAdapter
from rl4sys.policy import CANDIDATES, COUNT, DiscreteAction
from rl4sys.seeding import Seeds

ROW = spaces.Box(-1.0, 1.0, (2,), np.float32)
SEQUENCE = spaces.Sequence(ROW, stack=True)


def made() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("rl4sys/CandidateChoice-v0")


def test_rows_are_filled_up_and_counted() -> None:
    converter = ObservationConverter(SEQUENCE, action=DiscreteAction(3))
    found = converter.single(np.array([[1.0, 2.0], [3.0, 4.0]]), {})
    assert found[CANDIDATES].tolist() == [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]
    assert found[COUNT].tolist() == [2.0]


def test_rows_as_a_tuple_and_no_rows_at_all_are_candidates_too() -> None:
    converter = ObservationConverter(spaces.Sequence(ROW), action=DiscreteAction(2))
    assert converter.single((np.zeros(2), np.ones(2)), {})[COUNT].tolist() == [2.0]
    assert converter.single((), {})[COUNT].tolist() == [0.0]


def test_a_padded_array_and_a_count_are_candidates_too() -> None:
    space = spaces.Dict({CANDIDATES: spaces.Box(-1.0, 1.0, (3, 2)), COUNT: spaces.Discrete(3, start=1)})
    found = ObservationConverter(space, action=DiscreteAction(3)).single({CANDIDATES: np.ones((3, 2)), COUNT: 2}, {})
    assert (found[CANDIDATES].shape, found[COUNT].tolist()) == ((3, 2), [2.0])


@pytest.mark.parametrize(("rows", "problem"), [(np.zeros((4, 2)), "4 candidates"), (np.zeros((1, 5)), "reshape")])
def test_too_many_rows_or_features_are_refused(rows: Any, problem: str) -> None:
    with pytest.raises(ObservationMismatch, match=problem):
        ObservationConverter(SEQUENCE, action=DiscreteAction(3)).single(rows, {})


def test_a_sequence_needs_a_discrete_action_that_says_how_many() -> None:
    with pytest.raises(UnsupportedSpace, match="of which a Discrete action chooses one"):
        ObservationConverter(SEQUENCE)


@pytest.mark.filterwarnings("ignore")
def test_gymnasium_accepts_the_small_environment() -> None:
    # Its checker draws actions without looking at the observation; with one candidate all of them exist.
    check_env(CandidateChoice(most=1), skip_render_check=True)


def test_lanes_and_vector_environments_show_the_same_candidates() -> None:
    vector = gymnasium.vector.SyncVectorEnv([made, made])
    both = [Lanes(made, 2, Seeds(0), Grade.E1), VectorAdapter(vector, Seeds(0))]
    first, second = (lanes.reset() for lanes in both)
    for name in (CANDIDATES, COUNT, "context"):
        np.testing.assert_array_equal(first[name], second[name])
    for _ in range(40):
        for lanes in both:
            lanes.step(random_action(lanes.spec.action, lanes.observation, 2, np.random.default_rng(0)))
