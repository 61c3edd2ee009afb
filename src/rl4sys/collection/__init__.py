"""Acts in environments and records segments."""

from rl4sys.collection.collector import Collector, Environments
from rl4sys.collection.dataset_source import DatasetSource, load_episodes
from rl4sys.collection.minari_file import save_minari
from rl4sys.collection.pipeline import PipelinedSource, PipelineSetup, PooledSource, WorkerFailed, share_of
from rl4sys.collection.recorded_episodes import RecordedEpisode, UnusableData, record_episodes, save_episodes
from rl4sys.collection.rollout import NotFinite, Rollout
from rl4sys.collection.source import Collected, Demonstration, SteppedSource

__all__ = [
    "Collected",
    "Collector",
    "DatasetSource",
    "Demonstration",
    "Environments",
    "NotFinite",
    "PipelineSetup",
    "PipelinedSource",
    "PooledSource",
    "RecordedEpisode",
    "Rollout",
    "SteppedSource",
    "UnusableData",
    "WorkerFailed",
    "load_episodes",
    "record_episodes",
    "save_episodes",
    "save_minari",
    "share_of",
]
