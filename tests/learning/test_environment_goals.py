from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rl4sys.environments import make_gymnasium
from rl4sys.environments.wrappers import FrameSkip
from rl4sys.experience import Array
from rl4sys.learning import EnvironmentGoals
from rl4sys.replay import UnsuitableBuffer

BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)


class Goals(gymnasium.Env[Any, Any]):
    """An environment with goals, whose functions each test supplies."""

    def __init__(self, reward: Callable[..., Any], terminated: Callable[..., Any] | None = None) -> None:
        self.observation_space = spaces.Dict({"achieved_goal": BOX, "desired_goal": BOX})
        self.action_space = BOX
        self.compute_reward = reward
        if terminated is not None:
            self.compute_terminated = terminated


def near(achieved: Array, desired: Array, info: dict[str, Any]) -> Any:
    return np.linalg.norm(achieved - desired, axis=-1) < 0.1


def test_the_functions_of_an_environment_are_found_through_its_wrappers() -> None:
    goals = EnvironmentGoals(make_gymnasium("rl4sys/PointReach-v0", {"tolerance": 0.3}))
    achieved, desired = np.array([[0.0, 0.2], [0.0, 0.4]], np.float32), np.zeros((2, 2), np.float32)
    reward = goals.reward(achieved, desired)
    assert (reward.tolist(), reward.dtype) == ([0.0, -1.0], np.float32)
    assert goals.ends(achieved, desired) is None


def test_compute_terminated_decides_where_goals_end_episodes() -> None:
    goals = EnvironmentGoals(Goals(near, near))
    achieved, desired = np.array([[0.0, 0.01], [0.0, 0.4]]), np.zeros((2, 2))
    assert goals.ends(achieved, desired) is not None
    assert np.array(goals.ends(achieved, desired)).tolist() == [True, False]


def test_a_single_false_counts_for_every_goal() -> None:
    goals = EnvironmentGoals(Goals(near, lambda achieved, desired, info: False))
    assert np.array(goals.ends(np.zeros((3, 2)), np.zeros((3, 2)))).tolist() == [False] * 3


def one_for_all(achieved: Array, desired: Array, info: dict[str, Any]) -> Any:
    return float(np.linalg.norm(achieved - desired) < 0.1)


def reads_info(achieved: Array, desired: Array, info: dict[str, Any]) -> Any:
    return info["speed"]


@pytest.mark.parametrize(
    ("reward", "terminated", "problem"),
    [
        (one_for_all, None, r"compute_reward .* does not treat the rows of a batch independently: 4 goals gave 0\.0"),
        (near, one_for_all, r"compute_terminated .* 4 goals gave \[False, False, False, False\]"),
        (reads_info, None, r"compute_reward .* fails for a batch of goals and an empty info: KeyError: 'speed'"),
    ],
)
def test_functions_that_cannot_handle_batches_are_refused(reward: Any, terminated: Any, problem: str) -> None:
    with pytest.raises(UnsuitableBuffer, match=problem) as refused:
        EnvironmentGoals(Goals(reward, terminated))
    assert "buffer.goal_reward={type: distance" in str(refused.value)


def test_an_environment_without_goals_is_refused() -> None:
    with pytest.raises(UnsuitableBuffer, match=r"CartPole-v1 has no function compute_reward"):
        EnvironmentGoals(make_gymnasium("CartPole-v1", {}))


def test_frame_skipping_is_refused() -> None:
    with pytest.raises(UnsuitableBuffer, match=r"Set environment\.frame_skip=1"):
        EnvironmentGoals(gymnasium.wrappers.TimeLimit(FrameSkip(Goals(near), 2), 10))
