"""`rl4sys.common.action`, as original programs import it."""

from rl4sys.client.original_action import RL4SysAction

__all__ = ["RL4SysAction"]
