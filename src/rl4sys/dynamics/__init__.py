"""Models of the world, learned from experience: what follows from a state and an action."""

from rl4sys.dynamics.config import (
    DYNAMICS,
    DeterministicConfig,
    DynamicsConfig,
    EnsembleConfig,
    GaussianConfig,
    OneStepConfig,
    register_dynamics,
)
from rl4sys.dynamics.encoder import Decoder, Encoder
from rl4sys.dynamics.evidence import Evidence, evidence
from rl4sys.dynamics.forecast import (
    LEVELS,
    Forecast,
    Truth,
    copy_last_error,
    coverage,
    disagreement,
    open_loop_error,
    reward_r2,
)
from rl4sys.dynamics.normed_mlp import NormedMlp
from rl4sys.dynamics.one_step import OneStepModel, OneStepTargets, flat_state
from rl4sys.dynamics.rssm import RSSM, State
from rl4sys.dynamics.rssm_config import RSSMConfig
from rl4sys.dynamics.statistics import STATISTICS, Standardization
from rl4sys.dynamics.world_model import ModelSize, WorldModel

__all__ = [
    "DYNAMICS",
    "LEVELS",
    "RSSM",
    "STATISTICS",
    "Decoder",
    "DeterministicConfig",
    "DynamicsConfig",
    "Encoder",
    "EnsembleConfig",
    "Evidence",
    "Forecast",
    "GaussianConfig",
    "ModelSize",
    "NormedMlp",
    "OneStepConfig",
    "OneStepModel",
    "OneStepTargets",
    "RSSMConfig",
    "Standardization",
    "State",
    "Truth",
    "WorldModel",
    "copy_last_error",
    "coverage",
    "disagreement",
    "evidence",
    "flat_state",
    "open_loop_error",
    "register_dynamics",
    "reward_r2",
]
