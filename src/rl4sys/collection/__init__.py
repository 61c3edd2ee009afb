"""Acts in environments and records segments."""

from rl4sys.collection.collector import Collector, Environments
from rl4sys.collection.pipeline import PipelinedSource, PipelineSetup, PooledSource, WorkerFailed, share_of
from rl4sys.collection.rollout import NotFinite, Rollout
from rl4sys.collection.source import Collected, Demonstration, SteppedSource

__all__ = [
    "Collected",
    "Collector",
    "Demonstration",
    "Environments",
    "NotFinite",
    "PipelineSetup",
    "PipelinedSource",
    "PooledSource",
    "Rollout",
    "SteppedSource",
    "WorkerFailed",
    "share_of",
]
