"""Algorithms: batches in, better weights out."""

from rl4sys.algorithms.bc import BC, BCConfig
from rl4sys.algorithms.ddpg import DDPG, DDPGConfig
from rl4sys.algorithms.dqn import DQN, DQNConfig
from rl4sys.algorithms.dreamer import Dreamer, DreamerConfig
from rl4sys.algorithms.droq import DroQ, DroQConfig
from rl4sys.algorithms.iql import IQL, IQLConfig
from rl4sys.algorithms.pets import PETS, PETSConfig
from rl4sys.algorithms.planet import PlaNet, PlaNetConfig
from rl4sys.algorithms.ppo import PPO, PPOConfig
from rl4sys.algorithms.ppo_rnd import PPORND, PPORNDConfig
from rl4sys.algorithms.qr_dqn import QRDQN, QRDQNConfig
from rl4sys.algorithms.sac import SAC, SACConfig
from rl4sys.algorithms.sac_discrete import DiscreteSAC
from rl4sys.algorithms.sql import SQL, SQLConfig
from rl4sys.algorithms.td3 import TD3, TD3Config
from rl4sys.algorithms.td3_bc import TD3BC, TD3BCConfig
from rl4sys.algorithms.tqc import TQC, TQCConfig

# For plug-ins, which import everything that they need for an algorithm from here.
from rl4sys.engine import (
    ALGORITHMS,
    AdvantageBatch,
    Algorithm,
    AlgorithmConfig,
    Policies,
    Problem,
    Progress,
    TensorBatch,
    TrainState,
    UnsuitableActions,
    Update,
    UpdateResult,
    advantage_batch,
    register_algorithm,
    run_update,
    with_default_buffer,
)
from rl4sys.networks import UnsuitableNetwork

__all__ = [
    "ALGORITHMS",
    "BC",
    "DDPG",
    "DQN",
    "IQL",
    "PETS",
    "PPO",
    "PPORND",
    "QRDQN",
    "SAC",
    "SQL",
    "TD3",
    "TD3BC",
    "TQC",
    "AdvantageBatch",
    "Algorithm",
    "AlgorithmConfig",
    "BCConfig",
    "DDPGConfig",
    "DQNConfig",
    "DiscreteSAC",
    "Dreamer",
    "DreamerConfig",
    "DroQ",
    "DroQConfig",
    "IQLConfig",
    "PETSConfig",
    "PPOConfig",
    "PPORNDConfig",
    "PlaNet",
    "PlaNetConfig",
    "Policies",
    "Problem",
    "Progress",
    "QRDQNConfig",
    "SACConfig",
    "SQLConfig",
    "TD3BCConfig",
    "TD3Config",
    "TQCConfig",
    "TensorBatch",
    "TrainState",
    "UnsuitableActions",
    "UnsuitableNetwork",
    "Update",
    "UpdateResult",
    "advantage_batch",
    "register_algorithm",
    "run_update",
    "with_default_buffer",
]
