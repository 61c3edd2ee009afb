"""Recorded sequences as a world model reads them."""

import numpy as np
import torch

from rl4sys.dynamics import Evidence, evidence
from rl4sys.experience import Sequences
from rl4sys.policy import BoxAction, DiscreteAction, action_vectors

CPU = torch.device("cpu")


def _sequences(**changes: np.ndarray) -> Sequences:
    """One stream: two steps, the end of the episode, two steps of the next one."""
    columns = {
        "action": np.array([[0, 1, 0, 1, 1]]),
        "reward": np.array([[1.0, 2.0, 0.0, 4.0, 5.0]], np.float32),
        "discount": np.array([[1.0, 0.0, 1.0, 1.0, 1.0]], np.float32),
        "acted": np.array([[True, True, False, True, True]]),
        "is_first": np.array([[False, False, False, True, False]]),
    } | changes
    observation = {"observation": np.zeros((1, 5, 3), np.float32)}
    return Sequences(observation, **columns, age=np.zeros((1, 5), np.int32), extras={}, carry={}, streams=())


def _read(context: int = 1, **changes: np.ndarray) -> Evidence:
    return evidence(_sequences(**changes), DiscreteAction(2), context, CPU)


def test_rewards_and_actions_stand_where_their_effect_is_observed() -> None:
    found = _read()
    assert found.reward.tolist() == [[0.0, 1.0, 2.0, 0.0, 4.0]]
    assert found.previous_action.tolist() == [[[0, 0], [1, 0], [0, 1], [0, 0], [0, 1]]]


def test_a_termination_stands_at_the_final_observation() -> None:
    assert _read().continues.tolist() == [[1.0, 1.0, 0.0, 1.0, 1.0]]
    assert _read().is_last.tolist() == [[False, False, True, False, False]]


def test_a_truncated_episode_continues() -> None:
    assert _read(discount=np.ones((1, 5), np.float32)).continues.tolist() == [[1.0] * 5]


def test_the_first_rows_of_a_sequence_in_mid_episode_are_not_learned_from() -> None:
    assert _read(context=2).weight.tolist() == [[0.0, 0.0, 1.0, 1.0, 1.0]]
    first = np.array([[True, False, False, True, False]])
    assert _read(context=2, is_first=first).weight.tolist() == [[1.0] * 5]


def test_slices_take_sequences() -> None:
    found = _read()
    assert len(found[0:1]) == 1
    assert torch.equal(found[0:1].reward, found.reward)


def test_vectors_are_scaled_from_their_bounds() -> None:
    box = BoxAction((0.0, -2.0), (4.0, 2.0))
    actions = np.array([[4.0, -2.0], [2.0, 1.0], [9.0, 0.0]], np.float32)
    assert action_vectors(box, actions).tolist() == [[1.0, -1.0], [0.0, 0.5], [1.0, 0.0]]
