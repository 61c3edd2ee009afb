"""Goal rewards by name."""

from __future__ import annotations

from abc import abstractmethod

from pydantic import Field

from rl4sys.config import Config, Registry
from rl4sys.replay.goals import DistanceReward, GoalReward
from rl4sys.replay.surroundings import Surroundings, UnsuitableBuffer


class GoalRewardConfig(Config):
    """How a transition is rewarded when another goal is put in place of its own."""

    @abstractmethod
    def build(self, surroundings: Surroundings) -> GoalReward:
        """The function."""


GOAL_REWARDS: Registry[GoalRewardConfig] = Registry("goal_reward", GoalRewardConfig, key="type")
register_goal_reward = GOAL_REWARDS.register


@register_goal_reward("environment")
class EnvironmentRewardConfig(GoalRewardConfig):
    """What the environment's own `compute_reward(achieved_goal, desired_goal, info)` says, called with whole batches
    and an empty `info`; episodes end at a goal where its `compute_terminated` says so, if it has one."""

    def build(self, surroundings: Surroundings) -> GoalReward:
        """The function of the environment that is acted in."""
        if surroundings.goal_reward is None:
            raise UnsuitableBuffer(
                "There is no environment here that could say how reaching a goal is rewarded: set "
                "buffer.goal_reward={type: distance, threshold: …} to what the environment does."
            )
        return surroundings.goal_reward()


@register_goal_reward("distance")
class DistanceRewardConfig(GoalRewardConfig):
    """0 within `threshold` of the goal and −1 elsewhere. It needs no environment, and so works on a server."""

    threshold: float = Field(gt=0)
    """The Euclidean distance to the goal up to which it is reached. More is easier, and less exact."""
    terminates: bool = False
    """Whether the episode ends where the goal is reached."""

    def build(self, surroundings: Surroundings) -> GoalReward:
        """The function."""
        return DistanceReward(self.threshold, self.terminates)
