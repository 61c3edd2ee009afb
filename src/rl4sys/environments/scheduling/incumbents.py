"""Heuristics that decide from observations: what a policy can start from by `environment.incumbent`.

A policy learns from what it sees, so these rules, too, know the features of the candidates only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rl4sys.environments.scheduling.features import LONG
from rl4sys.environments.scheduling.protocols import SHORT
from rl4sys.experience import Array

_REQUESTED, _FITS, _LEFT_FREE, _IS_WAITING = 0, 5, 6, 10
_FREE = 0
_SHORT = math.log(SHORT) / LONG
_KEPT = 1.0 / 16.0
"""Share of the machine's processors: 16 of 256."""
_ROUNDING = 1e-5
"""Features are 32-bit numbers."""


def shortest(observation: Mapping[str, Array]) -> int:
    """SJF: the candidate that requests the least time; never to wait."""
    rows = observation["candidates"]
    return int(np.argmin(np.where(rows[:, _IS_WAITING] > 0.0, np.inf, rows[:, _REQUESTED])))


def shortest_with_reserve(observation: Mapping[str, Array]) -> int:
    """SJF that keeps 1/16 of the processors free for jobs of up to ten minutes, and waits if nothing else is left.

    A job that starts on the empty machine may use all of it.
    """
    rows, context = observation["candidates"], observation["context"]
    is_short = rows[:, _REQUESTED] <= _SHORT + _ROUNDING
    leaves_enough = rows[:, _LEFT_FREE] >= _KEPT - _ROUNDING
    is_empty = context[_FREE] >= 1.0 - _ROUNDING
    may_start = (rows[:, _FITS] > 0.0) & (is_short | leaves_enough | is_empty)
    if not may_start.any():
        return len(rows) - 1
    return int(np.argmin(np.where(may_start, rows[:, _REQUESTED], np.inf)))
