from __future__ import annotations

import numpy as np
import pytest

from rl4sys.config import ConfigError
from rl4sys.experience import Array, Ending
from rl4sys.replay import (
    BUFFERS,
    BufferContext,
    DistanceReward,
    GoalReward,
    GoalRewardConfig,
    HindsightBuffer,
    Ratio,
    Surroundings,
    register_goal_reward,
)

from .goal_segments import goals

ACHIEVED = np.array([[0.0, 0.0], [3.0, 4.0], [0.3, 0.4]], np.float32)
ORIGIN = np.zeros((3, 2), np.float32)


def test_a_goal_is_reached_within_its_distance() -> None:
    reward = DistanceReward(threshold=0.51).reward(ACHIEVED, ORIGIN)
    assert (reward.tolist(), reward.dtype) == ([0.0, -1.0, 0.0], np.float32)


@pytest.mark.parametrize("shape", [(3,), (3, 2, 2)])
def test_goals_may_have_any_shape(shape: tuple[int, ...]) -> None:
    achieved = np.zeros(shape, np.float32)
    achieved[1] = 1.0
    assert DistanceReward(0.5).reward(achieved, np.zeros(shape, np.float32)).tolist() == [0.0, -1.0, 0.0]


def test_reaching_a_goal_ends_an_episode_only_if_configured() -> None:
    assert DistanceReward(0.51).ends(ACHIEVED, ORIGIN) is None
    ends = DistanceReward(0.51, terminates=True).ends(ACHIEVED, ORIGIN)
    assert ends is not None
    assert ends.tolist() == [True, False, True]


class Closeness:
    def reward(self, achieved: Array, desired: Array) -> Array:
        return np.asarray(-np.abs(achieved - desired).sum(axis=-1))

    def ends(self, achieved: Array, desired: Array) -> Array | None:
        return None


@register_goal_reward("tests_closeness")
class ClosenessConfig(GoalRewardConfig):
    """A goal reward of a user."""

    def build(self, context: BufferContext) -> GoalReward:
        return Closeness()


@register_goal_reward("tests_former_name")
class FormerNameConfig(GoalRewardConfig):
    """A goal reward of a user, written when `BufferContext` was called `Surroundings`."""

    def build(self, surroundings: Surroundings) -> GoalReward:
        return Closeness()


@pytest.mark.parametrize("name", ["tests_closeness", "tests_former_name"])
def test_a_goal_reward_of_a_user_is_used(name: str) -> None:
    config = BUFFERS.parse({"type": "hindsight", "size": 50, "goal_reward": {"type": name}})
    buffer = config.build(Ratio(1, 0, 64), np.random.default_rng(0), 1, BufferContext())
    assert isinstance(buffer, HindsightBuffer)
    buffer.add(goals(20, ending=Ending.TRUNCATED))
    batch = next(buffer.due())
    apart = batch.next_observation["achieved_goal"] - batch.observation["desired_goal"]
    relabelled = batch.observation["desired_goal"][:, 0] >= 0
    assert relabelled.sum() == 51
    np.testing.assert_array_equal(batch.reward[relabelled], -np.abs(apart[relabelled, 0]))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"type": "distance"}, r"goal_reward\.threshold: missing"),
        ({"type": "distance", "threshold": 0}, r"goal_reward\.threshold: got 0"),
        ({"type": "distence", "threshold": 1}, r"goal_reward\.type: .*did you mean 'distance'"),
    ],
)
def test_a_wrong_goal_reward_is_refused_by_name(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        BUFFERS.parse({"type": "hindsight", "goal_reward": settings})


@pytest.mark.parametrize("settings", [{"strategy": "past"}, {"relabel": -1}, {"storage": "tape"}])
def test_wrong_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        BUFFERS.parse({"type": "hindsight", **settings})
