"""Configs of buffers, and the registry in which users add their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np
from pydantic import Field

from rl4sys.config import Config, Registry
from rl4sys.experience import SegmentSchema
from rl4sys.replay.buffer_context import BufferContext, ReplayTooSmall, UnsuitableBuffer
from rl4sys.replay.cost import ReplayCost, columns_of
from rl4sys.replay.frame_column import frame_stacks
from rl4sys.replay.hindsight import HindsightBuffer
from rl4sys.replay.pace import OnceFresh, Ratio
from rl4sys.replay.prioritized import Priorities, PrioritizedBuffer
from rl4sys.replay.replay_buffer import UniformBuffer
from rl4sys.replay.sequence_buffer import SequenceBuffer
from rl4sys.replay.storage import InMemory, Mapped, Storage
from rl4sys.replay.stream_order import BYTES_PER_ROW
from rl4sys.replay.sum_tree import SumTree
from rl4sys.replay.trajectory import TrajectoryBuffer

AnyBuffer: TypeAlias = TrajectoryBuffer | UniformBuffer | PrioritizedBuffer | HindsightBuffer | SequenceBuffer

EMPTY_CONTEXT = BufferContext()
NO_FRAMES: Mapping[str, int] = {}
_LINK_BYTES = 8


class BufferConfig(Config):
    """Where experience is kept until it is learned from."""

    size: int
    """Steps that the buffer holds."""

    @abstractmethod
    def build(
        self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int, context: BufferContext = EMPTY_CONTEXT
    ) -> AnyBuffer:
        """Build the buffer at the pace of an algorithm whose transitions span `window` steps."""

    def cost(
        self, schema: SegmentSchema, steps: int | None = None, frames: Mapping[str, int] = NO_FRAMES
    ) -> ReplayCost | None:
        """Memory and disk needed for such segments, after `steps` steps if they do not fill the buffer.

        `frames` has the number of frames of stacked observation arrays. None if the cost is negligible.
        """
        return None


BUFFERS: Registry[BufferConfig] = Registry("buffer", BufferConfig, key="type")
register_buffer = BUFFERS.register


@register_buffer("trajectory")
class TrajectoryConfig(BufferConfig):
    """Experience in order, used once: for on-policy algorithms."""

    size: int = Field(2_048, ge=1)
    """Steps in one batch, over all environments. More make gradients less noisy and updates less frequent."""

    def build(
        self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int, context: BufferContext = EMPTY_CONTEXT
    ) -> TrajectoryBuffer:
        """Build the buffer."""
        if not isinstance(pace, OnceFresh):
            raise UnsuitableBuffer("This algorithm learns from replay: set buffer.type=uniform.")
        return TrajectoryBuffer(pace)


class ReplayConfig(BufferConfig):
    """Settings of every replay buffer."""

    size: int = Field(100_000, ge=1)
    """Transitions kept; new ones replace the oldest. A larger buffer keeps them longer and takes more memory."""
    storage: Literal["memory", "mmap"] = "memory"
    """`mmap` keeps the transitions in scratch files of the run, for a replay buffer larger than the memory: draws are
    slower when the system has to read from the disk. What is learned is the same."""
    on_low_memory: Literal["refuse", "shrink"] = "refuse"
    """What happens at the start if the replay buffer would not fit: `refuse` ends with an error, `shrink` lowers `size`
    and warns."""

    def cost(
        self, schema: SegmentSchema, steps: int | None = None, frames: Mapping[str, int] = NO_FRAMES
    ) -> ReplayCost | None:
        """The columns of all arrays and the index over them."""
        rows = self.size if steps is None else min(self.size, steps)
        stacks = frame_stacks(schema.observation, frames)
        index = self.size * _LINK_BYTES * (1 + len(stacks)) + self._extra_index_bytes()
        is_mapped = self.storage == "mmap"
        return ReplayCost(self.size, rows, columns_of(schema, stacks), index, is_mapped, schema.observation)

    def storage_in(self, context: BufferContext) -> Storage:
        """Where the columns are kept."""
        if self.storage == "memory":
            return InMemory()
        if context.scratch is None:
            raise UnsuitableBuffer(
                "buffer.storage=mmap needs a directory for scratch files, and there is none here: "
                "set buffer.storage=memory."
            )
        return Mapped(context.scratch)

    def _extra_index_bytes(self) -> int:
        """Bytes of the index beyond the successor of each transition."""
        return 0


@register_buffer("uniform")
class UniformConfig(ReplayConfig):
    """Replay that draws every transition with equal probability."""

    def build(
        self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int, context: BufferContext = EMPTY_CONTEXT
    ) -> UniformBuffer:
        """Build the buffer."""
        return UniformBuffer(self.size, replay_pace(pace), rng, window, self.storage_in(context), context.stacks)


@register_buffer("prioritized")
class PrioritizedConfig(ReplayConfig):
    """Replay that draws transitions with a large error more often (arXiv:1511.05952)."""

    alpha: float = Field(0.6, ge=0)
    """How much the error counts: 0 draws uniformly, 1 in proportion to the error."""
    beta: float = Field(0.4, ge=0, le=1)
    """How much of the sampling bias is corrected at the start; 1 corrects all of it."""
    beta_steps: int = Field(100_000, ge=1)
    """Steps over which the correction grows to 1."""

    def build(
        self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int, context: BufferContext = EMPTY_CONTEXT
    ) -> PrioritizedBuffer:
        """Build the buffer."""
        priorities = Priorities(alpha=self.alpha, beta=self.beta, beta_steps=self.beta_steps)
        storage, stacks = self.storage_in(context), context.stacks
        return PrioritizedBuffer(self.size, replay_pace(pace), rng, priorities, window, storage, stacks)

    def _extra_index_bytes(self) -> int:
        return SumTree.size(self.size)


@register_buffer("sequences")
class SequencesConfig(ReplayConfig):
    """Replay that draws sequences of consecutive steps, for networks with memory and for models of the world."""

    def build(
        self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int, context: BufferContext = EMPTY_CONTEXT
    ) -> SequenceBuffer:
        """Build the buffer, for sequences of `window` rows."""
        ratio = replay_pace(pace)
        if window < 2:
            raise UnsuitableBuffer("This algorithm learns from single transitions: set buffer.type=uniform.")
        if window > self.size:
            raise ReplayTooSmall(
                f"A sequence has {window} steps, and buffer.size holds {self.size}: raise buffer.size, or lower "
                f"algorithm.sequence_length."
            )
        if window * ratio.batch_size > self.size:
            raise ReplayTooSmall(
                f"A batch of {ratio.batch_size} sequences of {window} steps is more than the {self.size} steps of "
                f"buffer.size: raise it to at least {window * ratio.batch_size}, or lower algorithm.batch_size."
            )
        return SequenceBuffer(self.size, ratio, rng, window, self.storage_in(context), context.stacks)

    def _extra_index_bytes(self) -> int:
        return self.size * BYTES_PER_ROW


def replay_pace(pace: OnceFresh | Ratio) -> Ratio:
    """The pace of a replay buffer; refuses that of an on-policy algorithm."""
    if not isinstance(pace, Ratio):
        raise UnsuitableBuffer("This algorithm learns from fresh experience only: set buffer.type=trajectory.")
    return pace
