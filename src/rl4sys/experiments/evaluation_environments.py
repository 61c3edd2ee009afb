"""The environments that a run evaluates in, kept from one evaluation to the next."""

from __future__ import annotations

from rl4sys.environments import AnyLanes, EnvironmentConfig, EpisodeSummary, Grade, Lanes, Step
from rl4sys.experience import Array, Arrays
from rl4sys.learning.evaluation import EvaluationLanes
from rl4sys.seeding import Seeds


class EvaluationEnvironments:
    """Makes environments once where a reset with a seed makes an old one equal to a new one.

    That is so for grade E1. Environments of other grades may remember more than their episode, and an evaluation must
    not depend on the evaluations before it: they are made for each evaluation.
    """

    def __init__(self, config: EnvironmentConfig, grade: Grade) -> None:
        self._config, self._keeps = config, grade is Grade.E1
        self._kept: dict[int, Lanes] = {}

    def lanes(self, seeds: Seeds, count: int) -> EvaluationLanes:
        """`count` environments, whose next reset takes these seeds."""
        if count in self._kept:
            self._kept[count].reseed(seeds)
            return _Lent(self._kept[count])
        lanes: AnyLanes = self._config.lanes(seeds, count, Grade.E3)
        if not self._keeps or not isinstance(lanes, Lanes):
            return lanes
        self._kept[count] = lanes
        return _Lent(lanes)

    def close(self) -> None:
        """Close the environments that are kept."""
        for lanes in self._kept.values():
            lanes.close()
        self._kept.clear()


class _Lent:
    """Lanes that stay open when an evaluation closes them."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self.count = lanes.count

    def reset(self) -> Arrays:
        return self._lanes.reset()

    def step(self, action: Array) -> Step:
        return self._lanes.step(action)

    def episodes(self) -> list[EpisodeSummary]:
        return self._lanes.episodes()

    def close(self) -> None:
        self._lanes.episodes()
