"""What a buffer may know of where it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rl4sys.experience import ArraySpec
from rl4sys.replay.goals import GoalReward


class UnsuitableBuffer(ValueError):
    """A buffer does not go together with an algorithm, or with what is observed."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All of it is optional: a buffer that cannot do without refuses to be built."""

    observation: tuple[ArraySpec, ...] = ()
    """The arrays that are observed; empty where that is not known yet."""
    scratch: Path | None = None
    """A directory for files that need not outlive the process."""
    goal_reward: Callable[[], GoalReward] | None = None
    """How the environment that is acted in rewards reaching a goal."""
