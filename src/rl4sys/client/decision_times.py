"""A histogram of how long decisions take, from a sample of them."""

from __future__ import annotations

BUCKETS = 24
SAMPLED = 64
"""One decision of so many is timed, so that the others pay nothing."""


class DecisionTimes:
    """Bucket i counts decisions of less than 2^i microseconds, and of no less than 2^(i-1).

    The last bucket has all longer ones. Counts may miss one now and then when threads race, which a histogram can bear.
    """

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        self.is_profiled = False
        self.each: list[int] = []
        """The nanoseconds of every decision, while a profile is made."""

    def add(self, nanoseconds: int, decisions: int = 1) -> None:
        """Count a decision, or the mean of several that were taken together."""
        if self.is_profiled and decisions > 1:
            self.each += [nanoseconds] * decisions
        self.counts[min(BUCKETS - 1, (nanoseconds // 1000).bit_length())] += 1
