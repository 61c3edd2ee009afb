"""Segments in, batches out."""

from rl4sys.replay.config import BUFFERS, AnyBuffer, BufferConfig, TrajectoryConfig, UnsuitableBuffer, register_buffer
from rl4sys.replay.pace import OnceFresh, Ratio
from rl4sys.replay.prioritized import Priorities, PrioritizedBuffer
from rl4sys.replay.trajectory import TrajectoryBuffer
from rl4sys.replay.uniform import UniformBuffer

__all__ = [
    "BUFFERS",
    "AnyBuffer",
    "BufferConfig",
    "OnceFresh",
    "Priorities",
    "PrioritizedBuffer",
    "Ratio",
    "TrajectoryBuffer",
    "TrajectoryConfig",
    "UniformBuffer",
    "UnsuitableBuffer",
    "register_buffer",
]
