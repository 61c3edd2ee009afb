"""The debug mode of a run, and updates that failed."""

from rl4sys.experiments.debugging.debug_mode import DebugMode
from rl4sys.experiments.debugging.failed_updates import FailedUpdates, ReplayedUpdate, replay_update

__all__ = ["DebugMode", "FailedUpdates", "ReplayedUpdate", "replay_update"]
