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
from rl4sys.dynamics.one_step import OneStepModel, OneStepTargets, flat_state
from rl4sys.dynamics.statistics import STATISTICS, Standardization

__all__ = [
    "DYNAMICS",
    "STATISTICS",
    "DeterministicConfig",
    "DynamicsConfig",
    "EnsembleConfig",
    "GaussianConfig",
    "OneStepConfig",
    "OneStepModel",
    "OneStepTargets",
    "Standardization",
    "flat_state",
    "register_dynamics",
]
