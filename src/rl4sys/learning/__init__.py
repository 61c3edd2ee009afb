"""Feeds segments to an algorithm, publishes versions, evaluates."""

from rl4sys.learning.devices import DeviceUnavailable, choose_device
from rl4sys.learning.environment_goals import EnvironmentGoals
from rl4sys.learning.evaluation import EndlessEpisode, Evaluation, evaluate
from rl4sys.learning.learner import Buffer, Learner, Updating
from rl4sys.learning.normalizers import ObservationStatistics, RewardScale, RunningMoments
from rl4sys.learning.out_of_memory import OutOfMemory
from rl4sys.learning.replay_room import ReplayTooLarge, Room, require_room, shrunk
from rl4sys.learning.skips import PATIENCE, Diverged, Skips

__all__ = [
    "PATIENCE",
    "Buffer",
    "DeviceUnavailable",
    "Diverged",
    "EndlessEpisode",
    "EnvironmentGoals",
    "Evaluation",
    "Learner",
    "ObservationStatistics",
    "OutOfMemory",
    "ReplayTooLarge",
    "RewardScale",
    "Room",
    "RunningMoments",
    "Skips",
    "Updating",
    "choose_device",
    "evaluate",
    "require_room",
    "shrunk",
]
