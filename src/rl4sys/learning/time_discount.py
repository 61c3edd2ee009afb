"""Discounts by elapsed time: what follows after dt seconds is worth exp(−dt / horizon)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rl4sys.experience import Segment


class NoElapsedTime(ValueError):
    """Experience without times came to a learner that discounts by them."""


class TimeDiscount:
    """Turns the elapsed time of each step into its discount."""

    def __init__(self, horizon: float) -> None:
        """`horizon`: seconds after which something is worth 1/e of what it is worth now."""
        self._horizon = horizon

    def applied(self, segment: Segment) -> Segment:
        """The segment with the discount of each step, or `NoElapsedTime`."""
        if segment.elapsed is None:
            raise NoElapsedTime(
                f"Stream {segment.stream.client}/{segment.stream.agent}/{segment.stream.lane} gives no times, and "
                f"algorithm.horizon discounts by them. Let an environment put seconds into info['now'], let a client "
                f"call act(observation, now=seconds), or use algorithm.gamma instead."
            )
        # In double precision: the exponent of a short time would lose digits.
        discount = np.exp(-segment.elapsed.astype(np.float64) / self._horizon).astype(np.float32)
        return replace(segment, elapsed=None, time_discount=discount)
