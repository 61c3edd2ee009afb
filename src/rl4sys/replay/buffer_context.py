"""What a buffer may need to know about the run or server it works in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rl4sys.experience import ArraySpec
from rl4sys.replay.frame_column import Stacks, frame_stacks
from rl4sys.replay.goal_rewards import GoalReward


class UnsuitableBuffer(ValueError):
    """The buffer does not fit the algorithm or the observations."""


class ReplayTooSmall(UnsuitableBuffer):
    """The buffer cannot hold what is drawn from it at once."""


@dataclass(frozen=True, slots=True)
class BufferContext:
    """What is known where a buffer is built. Every field is optional: a buffer that needs one refuses to be built."""

    observation: tuple[ArraySpec, ...] = ()
    """The observation arrays; empty if they are not known yet."""
    scratch: Path | None = None
    """A directory for files that are needed only while the process runs."""
    goal_reward: Callable[[], GoalReward] | None = None
    """Builds the goal reward of the environment; None where there is no environment."""
    frames: Mapping[str, int] = field(default_factory=dict)
    """Observation arrays that show several frames along their last axis, the newest last, and how many."""

    @property
    def stacks(self) -> Stacks:
        """The arrays of which replay stores the newest frame only."""
        return frame_stacks(self.observation, self.frames)
