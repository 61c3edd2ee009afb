"""States on disk: checked by hashes, complete or absent, at the cost of what is new."""

from rl4sys.checkpoints.checkpoints import Checkpoints, LoadedCheckpoint, NoCheckpoint
from rl4sys.checkpoints.files import CheckpointDamaged
from rl4sys.checkpoints.replay_chunks import ReplayRows

__all__ = ["CheckpointDamaged", "Checkpoints", "LoadedCheckpoint", "NoCheckpoint", "ReplayRows"]
