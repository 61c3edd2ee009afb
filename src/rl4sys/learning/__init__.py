"""Feeds segments to an algorithm, publishes versions, evaluates."""

from rl4sys.learning.devices import DeviceUnavailable, choose_device
from rl4sys.learning.evaluation import EndlessEpisode, Evaluation, evaluate
from rl4sys.learning.learner import Buffer, Diverged, Learner
from rl4sys.learning.normalizers import ObservationStatistics, RewardScale, RunningMoments

__all__ = [
    "Buffer",
    "DeviceUnavailable",
    "Diverged",
    "EndlessEpisode",
    "Evaluation",
    "Learner",
    "ObservationStatistics",
    "RewardScale",
    "RunningMoments",
    "choose_device",
    "evaluate",
]
