"""Algorithms: batches in, better weights out."""

from rl4sys.algorithms.ddpg import DDPG, DDPGConfig
from rl4sys.algorithms.dqn import DQN, DQNConfig
from rl4sys.algorithms.ppo import PPO, PPOConfig
from rl4sys.algorithms.problem import (
    Policies,
    Problem,
    Progress,
    UnsuitableActions,
    Update,
    without_memory,
)
from rl4sys.algorithms.registry import (
    ALGORITHMS,
    Algorithm,
    AlgorithmConfig,
    register_algorithm,
    with_usual_buffer,
)
from rl4sys.algorithms.sac import SAC, SACConfig
from rl4sys.algorithms.sac_discrete import DiscreteSAC
from rl4sys.algorithms.sql import SQL, SQLConfig
from rl4sys.algorithms.td3 import TD3, TD3Config
from rl4sys.networks import UnsuitableNetwork

__all__ = [
    "ALGORITHMS",
    "DDPG",
    "DQN",
    "PPO",
    "SAC",
    "SQL",
    "TD3",
    "Algorithm",
    "AlgorithmConfig",
    "DDPGConfig",
    "DQNConfig",
    "DiscreteSAC",
    "PPOConfig",
    "Policies",
    "Problem",
    "Progress",
    "SACConfig",
    "SQLConfig",
    "TD3Config",
    "UnsuitableActions",
    "UnsuitableNetwork",
    "Update",
    "register_algorithm",
    "with_usual_buffer",
    "without_memory",
]
