"""An algorithm that only records its calls, and experience to feed a learner with."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from algorithms.problems import problem, segment
from rl4sys.algorithms import Policies, Progress, Update
from rl4sys.experience import Array, Ending, Segment, Transitions
from rl4sys.networks import BatchSplitter
from rl4sys.policy import Head, PolicySpec, ProgramBuilder
from rl4sys.state import State


class RecordingAlgorithm:
    """Records what it is given; its only weight is the number of updates."""

    def __init__(self) -> None:
        spec = PolicySpec(problem().action, ProgramBuilder(problem().observation).program(), Head("deterministic", ()))
        self.policies = Policies(spec, spec)
        self.train_state: Any = self
        self.splitter = BatchSplitter()
        self.progress: list[Progress] = []
        self.batches: list[Any] = []
        self.events: list[str] = []
        self.statistics: dict[str, tuple[Array, Array]] = {}

    def advance(self, progress: Progress) -> None:
        self.progress.append(progress)

    @property
    def schedule_factors(self) -> dict[str, float]:
        return {}

    def update(self, batch: Any) -> Update:
        self.batches.append(batch)
        self.events.append("update")
        feedback = {"priority": torch.from_numpy(np.abs(batch.reward))} if isinstance(batch, Transitions) else {}
        return Update({"loss": 1.0}, feedback)

    def tensors(self, batch: Transitions) -> Transitions:
        return batch

    def standardize(self, name: str, mean: Array, scale: Array) -> None:
        self.events.append("standardize")
        self.statistics[name] = (mean, scale)

    def policy_weights(self) -> Array:
        return np.array([len(self.batches)], np.float32)

    def state(self) -> State:
        return {}

    def restore(self, state: State) -> None:
        pass


def experience(turn: int, *, steps: int = 6, version: int = 0) -> list[Segment]:
    """What two lanes collect in a turn; the episode of lane 1 continues from turn to turn."""
    rng, task = np.random.default_rng(turn), problem()
    unfinished: dict[str, Any] = {"start": turn * steps, "ending": Ending.CONTINUES}
    return [
        segment(rng, task, steps, lane=0, episode=turn, policy_version=version),
        segment(rng, task, steps, lane=1, policy_version=version, **unfinished),
    ]
