"""Environments as lanes of named arrays: Gymnasium, vector backends, and small ones for diagnosis."""

from rl4sys.environments.config import (
    ENVIRONMENTS,
    AnyLanes,
    EnvironmentConfig,
    GymnasiumConfig,
    register_environment,
)
from rl4sys.environments.diagnostics import chain_values, register
from rl4sys.environments.envpool_backend import envpool_lanes
from rl4sys.environments.episodes import EpisodeSummary, Step
from rl4sys.environments.exactness import Grade, Restorable
from rl4sys.environments.grading import probe, random_action
from rl4sys.environments.lanes import Lanes
from rl4sys.environments.making import MissingDependency, UnknownEnvironment, make_gymnasium
from rl4sys.environments.spaces import (
    EnvironmentSpec,
    ObservationMismatch,
    UnsupportedSpace,
    action_converter,
    action_spec,
    observation_specs,
)
from rl4sys.environments.vector import VectorAdapter

register()

__all__ = [
    "ENVIRONMENTS",
    "AnyLanes",
    "EnvironmentConfig",
    "EnvironmentSpec",
    "EpisodeSummary",
    "Grade",
    "GymnasiumConfig",
    "Lanes",
    "MissingDependency",
    "ObservationMismatch",
    "Restorable",
    "Step",
    "UnknownEnvironment",
    "UnsupportedSpace",
    "VectorAdapter",
    "action_converter",
    "action_spec",
    "chain_values",
    "envpool_lanes",
    "make_gymnasium",
    "observation_specs",
    "probe",
    "random_action",
    "register_environment",
]
