"""Bounds of the rewards that a learner accepts: absurd ones of one client must not spoil what others teach."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

from rl4sys.experience import Array
from rl4sys.wire import RefusalReason, SegmentRefused

DEFAULT_BOUNDS = (-1e12, 1e12)
"""Squares of returns of such rewards are finite in float32."""
_KEY = "reward_bounds"


class RewardBounds(NamedTuple):
    """The least and the greatest reward."""

    low: float
    high: float

    def require(self, reward: Array, sequence: int) -> None:
        """Raise `SegmentRefused` for the first reward outside."""
        low, high = reward.min(), reward.max()
        if low < self.low or high > self.high:
            raise SegmentRefused(
                RefusalReason.REWARD_BOUNDS,
                f"Segment {sequence} has a reward of {low if low < self.low else high:g}; this learner accepts "
                f"{self.low:g} to {self.high:g} (reward_bounds). Correct the reward, or let the learner accept more.",
            )


@lru_cache(maxsize=1_024)
def bounds_of(config: str) -> RewardBounds | None:
    """The bounds in a learner's config in canonical form; None if every finite reward is accepted."""
    bounds = (json.loads(config) if config else {}).get(_KEY, DEFAULT_BOUNDS)
    return None if bounds is None else RewardBounds(*bounds)
