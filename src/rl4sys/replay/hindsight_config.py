"""Configs of hindsight replay and of its goal rewards."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated

import numpy as np
from pydantic import Field

from rl4sys.config import Config, Registry
from rl4sys.replay.buffer_context import BufferContext, UnsuitableBuffer
from rl4sys.replay.config import EMPTY_CONTEXT, ReplayConfig, register_buffer, replay_pace
from rl4sys.replay.episode_spans import BYTES_PER_ROW
from rl4sys.replay.goal_rewards import ACHIEVED, DESIRED, DistanceReward, GoalReward
from rl4sys.replay.hindsight import Hindsight, HindsightBuffer, Strategy, without_goals
from rl4sys.replay.pace import OnceFresh, Ratio


class GoalRewardConfig(Config):
    """How a transition is rewarded when its goal is replaced by another one."""

    @abstractmethod
    def build(self, context: BufferContext) -> GoalReward:
        """Build the goal reward."""


GOAL_REWARDS: Registry[GoalRewardConfig] = Registry("goal_reward", GoalRewardConfig, key="type")
register_goal_reward = GOAL_REWARDS.register


@register_goal_reward("environment")
class EnvironmentRewardConfig(GoalRewardConfig):
    """The environment's own `compute_reward(achieved_goal, desired_goal, info)`, called with whole batches and an
    empty `info`. If the environment has `compute_terminated`, it decides where reaching a goal ends the episode."""

    def build(self, context: BufferContext) -> GoalReward:
        """The goal reward of the environment that the policy acts in."""
        if context.goal_reward is None:
            raise UnsuitableBuffer(
                "buffer.goal_reward=environment needs an environment, and there is none here. Set "
                "buffer.goal_reward={type: distance, threshold: …} to match the reward of the environment."
            )
        return context.goal_reward()


@register_goal_reward("distance")
class DistanceRewardConfig(GoalRewardConfig):
    """0 within `threshold` of the goal and −1 elsewhere. It needs no environment, so it also works on a server."""

    threshold: float = Field(gt=0)
    """The goal is reached within this Euclidean distance. A larger one is easier to reach and less exact."""
    terminates: bool = False
    """Whether reaching the goal terminates the episode."""

    def build(self, context: BufferContext) -> GoalReward:
        """Build the goal reward."""
        return DistanceReward(self.threshold, self.terminates)


@register_buffer("hindsight")
class HindsightConfig(ReplayConfig):
    """Uniform replay for environments with goals. In most transitions the goal is replaced by one that was reached in
    the same episode (arXiv:1707.01495). Observations need the arrays `achieved_goal` and `desired_goal`."""

    strategy: Strategy = "future"
    """Where new goals come from: `future` takes a goal reached later in the same episode, `final` the one reached at
    its end, `episode` any goal reached in it."""
    relabel: int = Field(4, ge=0)
    """Relabelled transitions for each transition that keeps its goal. More of them learn more from failures and less
    about the goals that are actually asked for; 0 is uniform replay."""
    goal_reward: Annotated[GoalRewardConfig, GOAL_REWARDS] = EnvironmentRewardConfig()
    """How relabelled transitions are rewarded."""

    def build(
        self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int, context: BufferContext = EMPTY_CONTEXT
    ) -> HindsightBuffer:
        """Build the buffer."""
        if window > 1:
            raise UnsuitableBuffer(
                f"Hindsight replay relabels single steps, not windows of {window} steps: set algorithm.n_step=1."
            )
        shapes = {spec.name: spec.shape for spec in context.observation}
        if shapes and (ACHIEVED not in shapes or shapes[ACHIEVED] != shapes.get(DESIRED)):
            raise UnsuitableBuffer(without_goals(shapes))
        hindsight = Hindsight(self.goal_reward.build(context), self.strategy, self.relabel)
        return HindsightBuffer(self.size, replay_pace(pace), rng, hindsight, self.storage_in(context), context.stacks)

    def _extra_index_bytes(self) -> int:
        return self.size * BYTES_PER_ROW
