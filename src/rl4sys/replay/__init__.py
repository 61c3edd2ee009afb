"""Segments in, batches out."""

from rl4sys.replay.available_space import AvailableSpace, available_disk, available_memory
from rl4sys.replay.buffer_context import BufferContext, ReplayTooSmall, UnsuitableBuffer
from rl4sys.replay.config import BUFFERS, AnyBuffer, BufferConfig, ReplayConfig, TrajectoryConfig, register_buffer
from rl4sys.replay.cost import ReplayCost
from rl4sys.replay.goal_rewards import ACHIEVED, DESIRED, DistanceReward, GoalReward
from rl4sys.replay.hindsight import Hindsight, HindsightBuffer
from rl4sys.replay.hindsight_config import GOAL_REWARDS, GoalRewardConfig, register_goal_reward
from rl4sys.replay.limits import ReplayTooLarge, fit_replay, require_space
from rl4sys.replay.pace import OnceFresh, Ratio
from rl4sys.replay.prioritized import Priorities, PrioritizedBuffer
from rl4sys.replay.replay_buffer import ReplayBuffer, UniformBuffer
from rl4sys.replay.sequence_buffer import SequenceBuffer
from rl4sys.replay.trajectory import TrajectoryBuffer

Surroundings = BufferContext
"""The former name of `BufferContext`, which plug-ins may import."""

__all__ = [
    "ACHIEVED",
    "BUFFERS",
    "DESIRED",
    "GOAL_REWARDS",
    "AnyBuffer",
    "AvailableSpace",
    "BufferConfig",
    "BufferContext",
    "DistanceReward",
    "GoalReward",
    "GoalRewardConfig",
    "Hindsight",
    "HindsightBuffer",
    "OnceFresh",
    "Priorities",
    "PrioritizedBuffer",
    "Ratio",
    "ReplayBuffer",
    "ReplayConfig",
    "ReplayCost",
    "ReplayTooLarge",
    "ReplayTooSmall",
    "SequenceBuffer",
    "Surroundings",
    "TrajectoryBuffer",
    "TrajectoryConfig",
    "UniformBuffer",
    "UnsuitableBuffer",
    "available_disk",
    "available_memory",
    "fit_replay",
    "register_buffer",
    "register_goal_reward",
    "require_space",
]
