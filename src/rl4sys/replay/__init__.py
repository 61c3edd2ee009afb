"""Segments in, batches out."""

from rl4sys.replay.config import BUFFERS, AnyBuffer, BufferConfig, ReplayConfig, TrajectoryConfig, register_buffer
from rl4sys.replay.cost import SHARE, ReplayCost, amount
from rl4sys.replay.goal_config import GOAL_REWARDS, GoalRewardConfig, register_goal_reward
from rl4sys.replay.goals import ACHIEVED, DESIRED, DistanceReward, GoalReward
from rl4sys.replay.hindsight import Hindsight, HindsightBuffer
from rl4sys.replay.pace import OnceFresh, Ratio
from rl4sys.replay.prioritized import Priorities, PrioritizedBuffer
from rl4sys.replay.replay_buffer import ReplayBuffer
from rl4sys.replay.room import disk_at_hand, memory_at_hand
from rl4sys.replay.surroundings import Surroundings, UnsuitableBuffer
from rl4sys.replay.trajectory import TrajectoryBuffer
from rl4sys.replay.uniform import UniformBuffer

__all__ = [
    "ACHIEVED",
    "BUFFERS",
    "DESIRED",
    "GOAL_REWARDS",
    "SHARE",
    "AnyBuffer",
    "BufferConfig",
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
    "Surroundings",
    "TrajectoryBuffer",
    "TrajectoryConfig",
    "UniformBuffer",
    "UnsuitableBuffer",
    "amount",
    "disk_at_hand",
    "memory_at_hand",
    "register_buffer",
    "register_goal_reward",
]
