"""States on disk: checked by hashes, complete or absent, at the cost of what is new."""

from rl4sys.checkpoints.checkpoints import Checkpoints, LoadedCheckpoint, NoCheckpoint
from rl4sys.checkpoints.files import CheckpointDamaged
from rl4sys.checkpoints.replay_chunks import ReplayRows
from rl4sys.checkpoints.state_bytes import decode_state, encode_state

__all__ = [
    "CheckpointDamaged",
    "Checkpoints",
    "LoadedCheckpoint",
    "NoCheckpoint",
    "ReplayRows",
    "decode_state",
    "encode_state",
]
