"""The one learning path: segments in, versions out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from rl4sys.algorithms import Algorithm, Progress
from rl4sys.experience import Array, Segment
from rl4sys.learning.normalizers import ObservationStatistics, RewardScale
from rl4sys.state import State, require
from rl4sys.weights import ModelStore


class Diverged(ArithmeticError):
    """Learning left the range of numbers."""


class Buffer(Protocol):
    """Holds experience and decides when there is something to learn from."""

    def add(self, segment: Segment, age: int) -> None:
        """Take in a segment whose policy is `age` versions old."""

    def due(self) -> Iterator[Any]:
        """The batches to learn from now."""

    def annotate(self, ids: Array, feedback: Mapping[str, Array]) -> None:
        """Take note of what the algorithm found out about drawn rows."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Steps taken in, and steps refused by reason."""

    def state(self) -> State:
        """Everything that later batches depend on."""

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""


class Learner:
    """Feeds segments to an algorithm at the buffer's pace and publishes the weights that come of it.

    Local training, the training server and recorded data all call `learn`; only they know where segments come from.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        buffer: Buffer,
        *,
        total_steps: int | None = None,
        observations: ObservationStatistics | None = None,
        rewards: RewardScale | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.buffer = buffer
        self.steps = 0
        self.updates = 0
        self._total_steps = total_steps
        self._observations = observations
        self._rewards = rewards
        algorithm.advance(Progress(0, total_steps))
        self.store = ModelStore(algorithm.policy_weights())

    def learn(self, segments: Sequence[Segment]) -> Mapping[str, float]:
        """Take in segments, learn what is due, publish. Returns the metrics of the last update, if there was one."""
        for segment in segments:
            self.buffer.add(segment, self.store.latest - segment.policy_version)
            self.steps += segment.steps
        if self._observations is not None:
            self._observations.observe(segments)
        if self._rewards is not None:
            self._rewards.observe(segments)
        oldest = max((self.store.latest - segment.policy_version for segment in segments), default=0)
        metrics: Mapping[str, float] = {}
        before = self.updates
        for batch in self.buffer.due():
            seen = batch if self._rewards is None else self._rewards.scaled(batch)
            metrics, feedback = self.algorithm.update(seen)
            if feedback:
                self.buffer.annotate(batch.ids, feedback)
            self.updates += 1
        # Only now: schedules see a batch as the part of the run that begins where the last one ended.
        self.algorithm.advance(Progress(self.steps, self._total_steps))
        if self.updates > before:
            if self._observations is not None:
                # Only now: the batch was judged with the statistics that its own policy had.
                for name, (mean, scale) in self._observations.standardization().items():
                    self.algorithm.standardize(name, mean, scale)
            weights = self.algorithm.policy_weights()
            if not np.isfinite(weights).all():
                raise Diverged(
                    f"The weights are no longer finite after update {self.updates} at step {self.steps:,}. "
                    f"Lower algorithm.lr or normalise rewards and observations; what was saved before is intact."
                )
            self.store.publish(weights)
            metrics = {**metrics, "age": float(oldest)}
        return metrics

    def state(self) -> State:
        """Everything that later versions depend on, but for the rows of a replay buffer."""
        return {
            "steps": self.steps,
            "updates": self.updates,
            "algorithm": self.algorithm.state(),
            "buffer": self.buffer.state(),
            "store": self.store.state(),
            "observations": self._observations.state() if self._observations is not None else None,
            "rewards": self._rewards.state() if self._rewards is not None else None,
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "steps", "updates", "algorithm", "buffer", "store", "observations", "rewards")
        self.steps, self.updates = int(state["steps"]), int(state["updates"])
        self.algorithm.restore(state["algorithm"])
        self.algorithm.advance(Progress(self.steps, self._total_steps))
        self.buffer.restore(state["buffer"])
        self.store.restore(state["store"])
        if self._observations is not None:
            self._observations.restore(state["observations"])
        if self._rewards is not None:
            self._rewards.restore(state["rewards"])
