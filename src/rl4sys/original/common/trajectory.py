"""`rl4sys.common.trajectory`, as original programs import it."""

from rl4sys.client.original_trajectory import RL4SysTrajectory

__all__ = ["RL4SysTrajectory"]
