"""Buffers by name."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import Field

from rl4sys.config import Config, Registry
from rl4sys.experience import SegmentSchema
from rl4sys.replay.cost import ReplayCost, columns_of
from rl4sys.replay.goal_config import GOAL_REWARDS, EnvironmentRewardConfig, GoalRewardConfig
from rl4sys.replay.goals import ACHIEVED, DESIRED
from rl4sys.replay.hindsight import Hindsight, HindsightBuffer, Strategy, without_goals
from rl4sys.replay.pace import OnceFresh, Ratio
from rl4sys.replay.prioritized import Priorities, PrioritizedBuffer
from rl4sys.replay.storage import InMemory, Mapped, Storage
from rl4sys.replay.stretches import BYTES_PER_ROW
from rl4sys.replay.sum_tree import SumTree
from rl4sys.replay.surroundings import Surroundings, UnsuitableBuffer
from rl4sys.replay.trajectory import TrajectoryBuffer
from rl4sys.replay.uniform import UniformBuffer

AnyBuffer: TypeAlias = TrajectoryBuffer | UniformBuffer | PrioritizedBuffer | HindsightBuffer

_LINK_BYTES = 8
_NOWHERE = Surroundings()


class BufferConfig(Config):
    """Where experience waits to be learned from."""

    size: int
    """Steps that the buffer holds."""

    @abstractmethod
    def build(
        self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int, surroundings: Surroundings = _NOWHERE
    ) -> AnyBuffer:
        """The buffer, at the pace of an algorithm whose transitions span `window` steps."""

    def cost(self, schema: SegmentSchema, steps: int | None = None) -> ReplayCost | None:
        """What it takes to hold such segments, after so many steps if they do not fill it.

        None where it is too little to speak of.
        """
        return None


BUFFERS: Registry[BufferConfig] = Registry("buffer", BufferConfig, key="type")
register_buffer = BUFFERS.register


@register_buffer("trajectory")
class TrajectoryConfig(BufferConfig):
    """Experience in order, used once: for on-policy algorithms."""

    size: int = Field(2_048, ge=1)
    """Steps in one batch, over all environments. More make gradients steadier and updates rarer."""

    def build(
        self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int, surroundings: Surroundings = _NOWHERE
    ) -> TrajectoryBuffer:
        """The buffer."""
        if not isinstance(pace, OnceFresh):
            raise UnsuitableBuffer("This algorithm learns from replay: set buffer.type=uniform.")
        return TrajectoryBuffer(pace)


class ReplayConfig(BufferConfig):
    """Settings of every replay."""

    size: int = Field(100_000, ge=1)
    """Transitions kept; the oldest give way. More remember longer and take memory."""
    storage: Literal["memory", "mmap"] = "memory"
    """`mmap` lets the transitions lie in scratch files of the run, for a replay larger than the memory: draws are
    slower where the system has to fetch them. It changes nothing that is learned."""
    on_low_memory: Literal["refuse", "shrink"] = "refuse"
    """What happens at the start when the replay would not fit: `shrink` lowers `size`, and says so."""

    def cost(self, schema: SegmentSchema, steps: int | None = None) -> ReplayCost | None:
        """Columns of all arrays, and the index over them."""
        rows = self.size if steps is None else min(self.size, steps)
        index = self.size * _LINK_BYTES + self._own_index()
        return ReplayCost(self.size, rows, columns_of(schema), index, self.storage == "mmap")

    def _own_index(self) -> int:
        """Bytes of what it keeps about transitions besides who follows whom."""
        return 0

    def _storage(self, surroundings: Surroundings) -> Storage:
        if self.storage == "memory":
            return InMemory()
        if surroundings.scratch is None:
            raise UnsuitableBuffer("There is no directory for scratch files here: set buffer.storage=memory.")
        return Mapped(surroundings.scratch)


@register_buffer("uniform")
class UniformConfig(ReplayConfig):
    """Replay in which every transition is as likely as any other."""

    def build(
        self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int, surroundings: Surroundings = _NOWHERE
    ) -> UniformBuffer:
        """The buffer."""
        return UniformBuffer(self.size, _replay_pace(pace), rng, window, self._storage(surroundings))


@register_buffer("prioritized")
class PrioritizedConfig(ReplayConfig):
    """Replay in which surprising transitions come more often (arXiv:1511.05952)."""

    alpha: float = Field(0.6, ge=0)
    """How much surprise counts: 0 draws uniformly, 1 in proportion to the error."""
    beta: float = Field(0.4, ge=0, le=1)
    """How much of the bias is corrected in the beginning; 1 is all of it."""
    beta_steps: int = Field(100_000, ge=1)
    """Steps over which the correction grows to 1."""

    def build(
        self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int, surroundings: Surroundings = _NOWHERE
    ) -> PrioritizedBuffer:
        """The buffer."""
        priorities = Priorities(alpha=self.alpha, beta=self.beta, beta_steps=self.beta_steps)
        storage = self._storage(surroundings)
        return PrioritizedBuffer(self.size, _replay_pace(pace), rng, priorities, window, storage)

    def _own_index(self) -> int:
        return SumTree.size(self.size)


@register_buffer("hindsight")
class HindsightConfig(ReplayConfig):
    """Uniform replay for environments with goals: most transitions are drawn as if what was reached later in the
    episode had been the goal (arXiv:1707.01495). Observations need the arrays `achieved_goal` and `desired_goal`."""

    strategy: Strategy = "future"
    """Which goals are taken instead: one reached later in the same episode, the one reached at its end, or any that
    was reached in it."""
    relabel: int = Field(4, ge=0)
    """Transitions with another goal for each one with its own. More learn more from failures, and less about the goals
    that are really asked for; 0 is uniform replay."""
    goal_reward: Annotated[GoalRewardConfig, GOAL_REWARDS] = EnvironmentRewardConfig()
    """How a transition with another goal is rewarded."""

    def build(
        self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int, surroundings: Surroundings = _NOWHERE
    ) -> HindsightBuffer:
        """The buffer."""
        if window > 1:
            raise UnsuitableBuffer(
                f"Hindsight gives single steps another goal, and not windows of {window}: set algorithm.n_step=1."
            )
        shapes = {spec.name: spec.shape for spec in surroundings.observation}
        if shapes and (ACHIEVED not in shapes or shapes[ACHIEVED] != shapes.get(DESIRED)):
            raise UnsuitableBuffer(without_goals(shapes))
        hindsight = Hindsight(self.goal_reward.build(surroundings), self.strategy, self.relabel)
        return HindsightBuffer(self.size, _replay_pace(pace), rng, hindsight, self._storage(surroundings))

    def _own_index(self) -> int:
        return self.size * BYTES_PER_ROW


def _replay_pace(pace: OnceFresh | Ratio) -> Ratio:
    if not isinstance(pace, Ratio):
        raise UnsuitableBuffer("This algorithm learns from fresh experience only: set buffer.type=trajectory.")
    return pace
