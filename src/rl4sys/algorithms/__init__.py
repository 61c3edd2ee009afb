"""Algorithms: batches in, better weights out."""

from rl4sys.algorithms.dqn import DQN, DQNConfig
from rl4sys.algorithms.ppo import PPO, PPOConfig
from rl4sys.algorithms.problem import (
    Policies,
    Problem,
    Progress,
    UnsuitableActions,
    UnsuitableNetwork,
    Update,
    without_memory,
)
from rl4sys.algorithms.registry import ALGORITHMS, Algorithm, AlgorithmConfig, register_algorithm

__all__ = [
    "ALGORITHMS",
    "DQN",
    "PPO",
    "Algorithm",
    "AlgorithmConfig",
    "DQNConfig",
    "PPOConfig",
    "Policies",
    "Problem",
    "Progress",
    "UnsuitableActions",
    "UnsuitableNetwork",
    "Update",
    "register_algorithm",
    "without_memory",
]
