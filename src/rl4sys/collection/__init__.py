"""Acts in environments and records segments."""

from rl4sys.collection.collector import Collector, Environments
from rl4sys.collection.pipeline import PipelinedSource, PipelineSetup, WorkerFailed
from rl4sys.collection.rollout import Rollout
from rl4sys.collection.source import Collected, SteppedSource

__all__ = [
    "Collected",
    "Collector",
    "Environments",
    "PipelineSetup",
    "PipelinedSource",
    "Rollout",
    "SteppedSource",
    "WorkerFailed",
]
