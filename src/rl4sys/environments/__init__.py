"""Environments as lanes of named arrays: Gymnasium, dm_control, Atari, vector backends, and small ones of our own."""

from rl4sys.environments.atari_config import AtariConfig
from rl4sys.environments.config import (
    ENVIRONMENTS,
    AnyLanes,
    EnvironmentConfig,
    GymnasiumConfig,
    PixelsConfig,
    register_environment,
)
from rl4sys.environments.diagnostics import register
from rl4sys.environments.episode_info import SUCCESS
from rl4sys.environments.episodes import EpisodeSummary, Step
from rl4sys.environments.exactness import Grade, Restorable
from rl4sys.environments.goals import MultiGoal, PointReach, register_goals
from rl4sys.environments.grading import probe, random_action
from rl4sys.environments.incumbent import Incumbent, UnsuitableIncumbent
from rl4sys.environments.lanes import Lanes
from rl4sys.environments.making import MissingDependency, make_environment, make_gymnasium
from rl4sys.environments.mujoco_setup import RenderingUnavailable
from rl4sys.environments.names import UnknownEnvironment, canonical_name, newest_version
from rl4sys.environments.objects import environment_name
from rl4sys.environments.scheduling import register_scheduling
from rl4sys.environments.spaces import (
    EnvironmentSpec,
    ObservationMismatch,
    UnsupportedSpace,
    action_converter,
    action_spec,
)
from rl4sys.environments.vector import VectorAdapter, envpool_lanes

register()
register_goals()
register_scheduling()

__all__ = [
    "ENVIRONMENTS",
    "SUCCESS",
    "AnyLanes",
    "AtariConfig",
    "EnvironmentConfig",
    "EnvironmentSpec",
    "EpisodeSummary",
    "Grade",
    "GymnasiumConfig",
    "Incumbent",
    "Lanes",
    "MissingDependency",
    "MultiGoal",
    "ObservationMismatch",
    "PixelsConfig",
    "PointReach",
    "RenderingUnavailable",
    "Restorable",
    "Step",
    "UnknownEnvironment",
    "UnsuitableIncumbent",
    "UnsupportedSpace",
    "VectorAdapter",
    "action_converter",
    "action_spec",
    "canonical_name",
    "environment_name",
    "envpool_lanes",
    "make_environment",
    "make_gymnasium",
    "newest_version",
    "probe",
    "random_action",
    "register_environment",
]
