"""The unit of experience: consecutive steps of one episode."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]


class Ending(enum.IntEnum):
    """How a segment ends. Only after `TERMINATED` is there no future value."""

    CONTINUES = 0
    TERMINATED = 1
    TRUNCATED = 2


class DecidedBy(enum.IntEnum):
    """What decided the actions of a segment."""

    POLICY = 0
    FALLBACK = 1
    """The system's own fallback: the extras are zeros, and `policy_version` is the version that would have acted."""
    INCUMBENT = 2
    """The system itself, which did not ask the policy and recorded what it did; otherwise as `FALLBACK`."""


class StreamKey(NamedTuple):
    """Identifies one sequence of episodes, so that a learner can order its segments."""

    client: str
    agent: str = "agent"
    lane: int = 0
    """The index of an environment, or of concurrent episodes, within a client."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive steps of one episode, one agent, one policy version.

    Each observation array has T+1 rows; the last is the observation after the final action. All other arrays have T
    rows.
    """

    stream: StreamKey
    episode: int
    start: int
    """Index of the first step within the episode."""
    policy_version: int
    ending: Ending
    observation: Arrays
    """Named arrays, even if there is only one; an action mask is one more array."""
    action: Array
    """As chosen, before clipping to the environment's bounds."""
    reward: Array
    extras: Arrays
    """What the policy recorded about its choice: `log_prob`, …"""
    carry: Arrays
    """Policy memory before the first step; empty for a policy without memory."""
    decided_by: DecidedBy = DecidedBy.POLICY
    elapsed: Array | None = None
    """Seconds from each decision to the observation that followed it; None if the sender gave no times."""
    time_discount: Array | None = None
    """How much what follows each step is worth, by the time until it; None if a discount is the same for all steps."""

    @property
    def steps(self) -> int:
        """T, the number of actions taken."""
        return len(self.reward)

    def follows(self, earlier: Segment) -> bool:
        """Whether this segment starts exactly where the earlier one ended, within one episode."""
        return (
            earlier.stream == self.stream
            and earlier.episode == self.episode
            and earlier.ending == Ending.CONTINUES
            and earlier.start + earlier.steps == self.start
        )

    def discount(self) -> Array:
        """1 for every step, or its discount by time, but 0 where the episode terminated: there is no value after it."""
        discount = np.ones(self.steps, np.float32) if self.time_discount is None else self.time_discount.copy()
        if self.ending == Ending.TERMINATED:
            discount[-1] = 0.0
        return discount
