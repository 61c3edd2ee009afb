"""The debug mode of a run, and updates that failed."""

from rl4sys.experiments.debugging.debug_mode import Debugging
from rl4sys.experiments.debugging.failed_updates import FailedUpdates, Replayed, replay_update

__all__ = ["Debugging", "FailedUpdates", "Replayed", "replay_update"]
