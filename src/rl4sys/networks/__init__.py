"""Torch modules for policy programs and critics, over flat parameters."""

from rl4sys.networks.accumulation import Accumulation, Rows, is_out_of_memory, joined, rows_of, rows_of_all
from rl4sys.networks.adam import FlatAdam
from rl4sys.networks.cnn import CnnConfig
from rl4sys.networks.config import (
    NETWORKS,
    MlpConfig,
    NetworkConfig,
    NetworksConfig,
    UnsuitableNetwork,
    register_network,
)
from rl4sys.networks.dense import Workspace
from rl4sys.networks.distributions import (
    LOG_STD_HIGH,
    LOG_STD_LOW,
    Evaluation,
    TanhGaussianSample,
    categorical,
    gaussian,
    masked,
    multi_categorical,
    tanh_gaussian_log_prob,
)
from rl4sys.networks.ensemble import EnsembleProgram, stacked_parameters
from rl4sys.networks.finite import NonFiniteUpdate
from rl4sys.networks.initialize import orthogonal, uniform_fan_in
from rl4sys.networks.parameters import Parameters
from rl4sys.networks.passes import Pass
from rl4sys.networks.program import FUNCTIONS, TensorMap, TorchProgram, from_spec

__all__ = [
    "FUNCTIONS",
    "LOG_STD_HIGH",
    "LOG_STD_LOW",
    "NETWORKS",
    "Accumulation",
    "CnnConfig",
    "EnsembleProgram",
    "Evaluation",
    "FlatAdam",
    "MlpConfig",
    "NetworkConfig",
    "NetworksConfig",
    "NonFiniteUpdate",
    "Parameters",
    "Pass",
    "Rows",
    "TanhGaussianSample",
    "TensorMap",
    "TorchProgram",
    "UnsuitableNetwork",
    "Workspace",
    "categorical",
    "from_spec",
    "gaussian",
    "is_out_of_memory",
    "joined",
    "masked",
    "multi_categorical",
    "orthogonal",
    "register_network",
    "rows_of",
    "rows_of_all",
    "stacked_parameters",
    "tanh_gaussian_log_prob",
    "uniform_fan_in",
]
