"""Feeds segments to an algorithm, publishes versions, evaluates."""

from rl4sys.learning.assembly import LearnerAssembly
from rl4sys.learning.devices import DeviceUnavailable, choose_device
from rl4sys.learning.environment_goals import EnvironmentGoals
from rl4sys.learning.evaluation import EndlessEpisode, Evaluation, evaluate
from rl4sys.learning.learner import Buffer, Learner, OutOfMemory, Updating
from rl4sys.learning.normalizers import ObservationStatistics, RewardScale, RunningMoments
from rl4sys.learning.skipped_updates import MAX_SKIPPED_IN_ROW, Diverged, SkippedUpdates
from rl4sys.learning.weight_transfer import KnownWeights, Transfer, TransferMismatch, weights_of

__all__ = [
    "MAX_SKIPPED_IN_ROW",
    "Buffer",
    "DeviceUnavailable",
    "Diverged",
    "EndlessEpisode",
    "EnvironmentGoals",
    "Evaluation",
    "KnownWeights",
    "Learner",
    "LearnerAssembly",
    "ObservationStatistics",
    "OutOfMemory",
    "RewardScale",
    "RunningMoments",
    "SkippedUpdates",
    "Transfer",
    "TransferMismatch",
    "Updating",
    "choose_device",
    "evaluate",
    "weights_of",
]
