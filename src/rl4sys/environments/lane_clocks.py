"""The clocks of lanes: environments that decide in their own time say in `info` what time it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rl4sys.experience import Array

NOW = "now"
"""The key of `info`, at resets and steps, for the time in seconds by the clock of the environment."""


class TimeMismatch(ValueError):
    """An environment gave a time that is none, or that lies before the one it gave last."""


class LaneClocks:
    """The time of each lane, and how much of it passed in a step."""

    def __init__(self, count: int) -> None:
        self.now = np.zeros(count, np.float64)

    def start(self, lane: int, info: Mapping[str, Any]) -> None:
        """Note the time at which an episode begins."""
        self.now[lane] = _time(info, -math.inf)

    def elapsed(self, infos: Sequence[Mapping[str, Any]]) -> Array:
        """Seconds since the last call, or since the beginning of the episode: [N] float32."""
        now = np.array([_time(info, earlier) for info, earlier in zip(infos, self.now.tolist(), strict=True)])
        passed = (now - self.now).astype(np.float32)
        self.now[:] = now
        return passed


def _time(info: Mapping[str, Any], earlier: float) -> float:
    try:
        now = float(info[NOW])
    except (KeyError, TypeError, ValueError) as error:
        given = info.get(NOW, "nothing")
        raise TimeMismatch(
            f"The environment gave {given!r} as info['{NOW}']; expected seconds, with every reset and step."
        ) from error
    if not earlier <= now < math.inf:
        raise TimeMismatch(
            f"The environment gave info['{NOW}'] = {now} after {earlier}; expected a finite time that does not go back."
        )
    return now
