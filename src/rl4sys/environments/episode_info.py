"""Numbers that environments put into `info`: their means over the steps of each episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rl4sys.experience import Array

SUCCESS = "is_success"
"""The key of `info` that says whether the task is solved. What counts is its value at the end of the episode."""
_MOST_NAMES = 64
"""Names that are kept of one environment: what has more is not meant as a set of metrics."""
_NUMBERS = frozenset(
    (bool, int, float, np.bool_, np.float64, np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint64)
)
_NOT_METRICS = frozenset(("now", "env_id"))
"""Numbers with another meaning: the time of a step, and the place in a pool."""


class EpisodeInfo:
    """Sums and counts of the numbers in `info`, for the running episode of each lane."""

    def __init__(self, lanes: int) -> None:
        self._sums: list[dict[str, list[float]]] = [{} for _ in range(lanes)]

    def note(self, lane: int, info: Mapping[str, Any]) -> None:
        """Take note of one step; whatever is not a number is ignored."""
        sums = self._sums[lane]
        for name, value in info.items():
            if type(value) not in _NUMBERS or name in _NOT_METRICS:
                continue
            if name not in sums or name == SUCCESS:
                if len(sums) < _MOST_NAMES or name == SUCCESS:
                    sums[name] = [float(value), 1.0]
            else:
                sums[name][0] += float(value)
                sums[name][1] += 1.0

    def finish(self, lane: int) -> dict[str, float]:
        """The means of the episode that ended in a lane, which is then forgotten."""
        means = {name: total / count for name, (total, count) in self._sums[lane].items()}
        self.forget(lane)
        return means

    def forget(self, lane: int) -> None:
        """Leave out the running episode of a lane."""
        if self._sums[lane]:
            self._sums[lane] = {}

    def state(self) -> list[dict[str, list[float]]]:
        """The sums so far; empty if no environment gave a number."""
        if not any(self._sums):
            return []
        return [{name: list(pair) for name, pair in sums.items()} for sums in self._sums]

    def restore(self, state: Sequence[Mapping[str, Sequence[float]]]) -> None:
        """Continue with saved sums."""
        for lane in range(len(self._sums)):
            saved = state[lane] if state else {}
            self._sums[lane] = {name: [float(total), float(count)] for name, (total, count) in saved.items()}


class VectorInfo:
    """The same for vector environments, which report an array for each name: summed up for all lanes at once.

    An array `_NAME` says which lanes have a value; lanes that were only reset have none.
    """

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._sums: dict[str, tuple[Array, Array]] = {}

    def note(self, info: Mapping[str, Any], acted: Array) -> None:
        """Take note of one step of the lanes that acted."""
        for name, values in info.items():
            if name.startswith("_") or name in _NOT_METRICS or not isinstance(values, np.ndarray):
                continue
            if values.dtype.kind not in "biuf" or values.shape != (self._lanes,):
                continue
            if name not in self._sums and len(self._sums) < _MOST_NAMES:
                self._sums[name] = np.zeros(self._lanes), np.zeros(self._lanes)
            if (pair := self._sums.get(name)) is None:
                continue
            total, count = pair
            has_value = acted & info.get(f"_{name}", True)
            if name == SUCCESS:
                total[has_value], count[has_value] = values[has_value], 1.0
            else:
                total += np.where(has_value, values, 0.0)
                count += has_value

    def finish(self, lane: int) -> dict[str, float]:
        """The means of the episode that ended in a lane, which is then forgotten."""
        means = {
            name: float(total[lane] / count[lane]) for name, (total, count) in self._sums.items() if count[lane] > 0
        }
        self.forget(lane)
        return means

    def forget(self, lane: int) -> None:
        """Leave out the running episode of a lane."""
        for total, count in self._sums.values():
            total[lane] = count[lane] = 0.0
