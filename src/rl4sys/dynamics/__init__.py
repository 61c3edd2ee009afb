"""Dynamics models: what follows from an action, learned from experience, as programs that planners run."""

from rl4sys.dynamics.config import (
    DYNAMICS,
    DeterministicConfig,
    DynamicsConfig,
    EnsembleConfig,
    GaussianConfig,
    OneStepConfig,
    register_dynamics,
)
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
from rl4sys.dynamics.one_step import OneStepModel, OneStepTargets, flat_state
from rl4sys.dynamics.statistics import STATISTICS, Standardization

__all__ = [
    "DYNAMICS",
    "LEVELS",
    "STATISTICS",
    "DeterministicConfig",
    "DynamicsConfig",
    "EnsembleConfig",
    "Forecast",
    "GaussianConfig",
    "OneStepConfig",
    "OneStepModel",
    "OneStepTargets",
    "Standardization",
    "Truth",
    "copy_last_error",
    "coverage",
    "disagreement",
    "flat_state",
    "open_loop_error",
    "register_dynamics",
    "reward_r2",
]
