"""What a training server did over time, as a page of curves."""

from rl4sys.laboratory.server_history.history import NoHistory, read_history
from rl4sys.laboratory.server_history.plot import plot_history

__all__ = ["NoHistory", "plot_history", "read_history"]
