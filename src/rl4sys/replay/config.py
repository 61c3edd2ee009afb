"""Buffers by name."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeAlias

import numpy as np
from pydantic import Field

from rl4sys.config import Config, Registry
from rl4sys.replay.pace import OnceFresh, Ratio
from rl4sys.replay.prioritized import Priorities, PrioritizedBuffer
from rl4sys.replay.trajectory import TrajectoryBuffer
from rl4sys.replay.uniform import UniformBuffer

AnyBuffer: TypeAlias = TrajectoryBuffer | UniformBuffer | PrioritizedBuffer


class UnsuitableBuffer(ValueError):
    """A buffer and an algorithm do not go together."""


class BufferConfig(Config):
    """Where experience waits to be learned from."""

    size: int
    """Steps that the buffer holds."""

    @abstractmethod
    def build(self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int) -> AnyBuffer:
        """The buffer, at the pace of an algorithm whose transitions span `window` steps."""


BUFFERS: Registry[BufferConfig] = Registry("buffer", BufferConfig, key="type")
register_buffer = BUFFERS.register


@register_buffer("trajectory")
class TrajectoryConfig(BufferConfig):
    """Experience in order, used once: for on-policy algorithms."""

    size: int = Field(2_048, ge=1)
    """Steps in one batch, over all environments. More make gradients steadier and updates rarer."""

    def build(self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int) -> TrajectoryBuffer:
        """The buffer."""
        if not isinstance(pace, OnceFresh):
            raise UnsuitableBuffer("This algorithm learns from replay: set buffer.type=uniform.")
        return TrajectoryBuffer(pace)


@register_buffer("uniform")
class UniformConfig(BufferConfig):
    """Replay in which every transition is as likely as any other."""

    size: int = Field(100_000, ge=1)
    """Transitions kept; the oldest give way. More remember longer and take memory."""

    def build(self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int) -> UniformBuffer:
        """The buffer."""
        return UniformBuffer(self.size, _replay_pace(pace), rng, window)


@register_buffer("prioritized")
class PrioritizedConfig(BufferConfig):
    """Replay in which surprising transitions come more often (arXiv:1511.05952)."""

    size: int = Field(100_000, ge=1)
    """Transitions kept; the oldest give way. More remember longer and take memory."""
    alpha: float = Field(0.6, ge=0)
    """How much surprise counts: 0 draws uniformly, 1 in proportion to the error."""
    beta: float = Field(0.4, ge=0, le=1)
    """How much of the bias is corrected in the beginning; 1 is all of it."""
    beta_steps: int = Field(100_000, ge=1)
    """Steps over which the correction grows to 1."""

    def build(self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int) -> PrioritizedBuffer:
        """The buffer."""
        priorities = Priorities(alpha=self.alpha, beta=self.beta, beta_steps=self.beta_steps)
        return PrioritizedBuffer(self.size, _replay_pace(pace), rng, priorities, window)


def _replay_pace(pace: OnceFresh | Ratio) -> Ratio:
    if not isinstance(pace, Ratio):
        raise UnsuitableBuffer("This algorithm learns from fresh experience only: set buffer.type=trajectory.")
    return pace
