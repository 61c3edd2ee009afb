"""Torch networks over flat parameters: policy programs, critics, optimizers and distributions."""

from rl4sys.networks.batch_splitter import BatchSplitter, is_out_of_memory
from rl4sys.networks.candidate_functions import exists
from rl4sys.networks.candidates import CandidatesConfig
from rl4sys.networks.cnn import CnnConfig
from rl4sys.networks.config import (
    NETWORKS,
    Activation,
    MlpConfig,
    NetworkConfig,
    NetworksConfig,
    UnsuitableNetwork,
    register_network,
)
from rl4sys.networks.distributions import (
    ActionLikelihood,
    action_likelihood,
    categorical,
    gaussian,
    masked,
    multi_categorical,
)
from rl4sys.networks.ensemble import EnsembleProgram, stacked_parameters
from rl4sys.networks.fused import LOG_STD_HIGH, LOG_STD_LOW, squared_error, tanh_gaussian
from rl4sys.networks.imitation_likelihood import imitation_log_prob, lowest_log_std, smoothed_log_prob
from rl4sys.networks.initialize import Initializer, orthogonal, truncated_normal, uniform_fan_in
from rl4sys.networks.local_module import initialize_modules
from rl4sys.networks.mixed import MixedConfig
from rl4sys.networks.network import Network, TrainedScalar
from rl4sys.networks.noise_stream import NoiseStream
from rl4sys.networks.optimizer import Loss, NonFiniteUpdate, Optimizer, OptimizerSettings
from rl4sys.networks.optimizer_rules import OPTIMIZERS, OptimizerConfig, as_optimizer
from rl4sys.networks.parameters import Parameters, TargetCopy
from rl4sys.networks.program import FUNCTIONS, TensorMap, TorchProgram, from_spec
from rl4sys.networks.rank_parts import RankExchange, RankParts
from rl4sys.networks.recurrent import GruConfig, LstmConfig, MemoryConfig
from rl4sys.networks.sequence_program import SequenceProgram
from rl4sys.networks.traced_module import ModuleConfig
from rl4sys.networks.transformer import TransformerConfig

__all__ = [
    "FUNCTIONS",
    "LOG_STD_HIGH",
    "LOG_STD_LOW",
    "NETWORKS",
    "OPTIMIZERS",
    "ActionLikelihood",
    "Activation",
    "BatchSplitter",
    "CandidatesConfig",
    "CnnConfig",
    "EnsembleProgram",
    "GruConfig",
    "Initializer",
    "Loss",
    "LstmConfig",
    "MemoryConfig",
    "MixedConfig",
    "MlpConfig",
    "ModuleConfig",
    "Network",
    "NetworkConfig",
    "NetworksConfig",
    "NoiseStream",
    "NonFiniteUpdate",
    "Optimizer",
    "OptimizerConfig",
    "OptimizerSettings",
    "Parameters",
    "RankExchange",
    "RankParts",
    "SequenceProgram",
    "TargetCopy",
    "TensorMap",
    "TorchProgram",
    "TrainedScalar",
    "TransformerConfig",
    "UnsuitableNetwork",
    "action_likelihood",
    "as_optimizer",
    "categorical",
    "exists",
    "from_spec",
    "gaussian",
    "imitation_log_prob",
    "initialize_modules",
    "is_out_of_memory",
    "lowest_log_std",
    "masked",
    "multi_categorical",
    "orthogonal",
    "register_network",
    "smoothed_log_prob",
    "squared_error",
    "stacked_parameters",
    "tanh_gaussian",
    "truncated_normal",
    "uniform_fan_in",
]
