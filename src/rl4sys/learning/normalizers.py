"""Running statistics that normalise observations and rewards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rl4sys.experience import Array, ArraySpec, Ending, Segment, Sequences, StreamKey, Transitions
from rl4sys.learning.weight_transfer import TransferMismatch
from rl4sys.state import State, require

_CLIP = 10.0
_EPSILON = 1e-8


class RunningMoments:
    """Mean and variance of all rows seen so far, updated batch by batch in float64 (Chan et al., 1983)."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count = 0
        self.mean = np.zeros(shape, np.float64)
        self._squares = np.zeros(shape, np.float64)

    def add(self, rows: Array) -> None:
        """Add rows [N, …]."""
        if len(rows) == 0:
            return
        wide = rows.astype(np.float64)
        mean = wide.mean(axis=0)
        squares = np.square(wide - mean).sum(axis=0)
        total = self.count + len(rows)
        difference = mean - self.mean
        self.mean = self.mean + difference * (len(rows) / total)
        self._squares = self._squares + squares + np.square(difference) * (self.count * len(rows) / total)
        self.count = total

    @property
    def variance(self) -> Array:
        """The variance; ones until two rows have been seen."""
        return self._squares / self.count if self.count > 1 else np.ones_like(self._squares)

    def state(self) -> State:
        """Count, mean and sum of squared deviations."""
        return {"count": self.count, "mean": np.array(self.mean), "squares": np.array(self._squares)}

    def restore(self, state: State) -> None:
        """Continue from a saved state."""
        require(state, "count", "mean", "squares")
        self.count, self.mean, self._squares = int(state["count"]), state["mean"], state["squares"]


class ObservationStatistics:
    """Mean and variance of every float observation. The learner writes them into the policy, which carries them."""

    def __init__(self, specs: Sequence[ArraySpec]) -> None:
        self._moments = {spec.name: RunningMoments(spec.shape) for spec in specs if spec.dtype == "float32"}

    def observe(self, segments: Sequence[Segment]) -> None:
        """Add every observation in which an action was chosen."""
        if not segments:
            return
        for name, moments in self._moments.items():
            moments.add(np.concatenate([segment.observation[name][:-1] for segment in segments]))

    def standardization(self) -> dict[str, tuple[Array, Array]]:
        """Mean and 1 / standard deviation of each observation, as float32."""
        return {
            name: (
                moments.mean.astype(np.float32),
                (1.0 / np.sqrt(moments.variance + _EPSILON)).astype(np.float32),
            )
            for name, moments in self._moments.items()
        }

    def install(self, standardization: Mapping[str, tuple[Array, Array]], count: int) -> None:
        """Continue from the mean and 1 / standard deviation that `count` observations had."""
        for name, (mean, scale) in standardization.items():
            rows = max(2, count)
            variance = np.maximum(0.0, 1.0 / np.square(scale.astype(np.float64)) - _EPSILON)
            self._moments[name].restore({"count": rows, "mean": mean.astype(np.float64), "squares": variance * rows})

    def take_over(self, state: State | None, tensors: Mapping[str, Array], steps: int) -> None:
        """Continue from the statistics of another learner, or from the mean and scale of a policy's tensors."""
        given = state or {}
        known = {name: given[name]["mean"] if name in given else tensors.get(f"{name}.mean") for name in self._moments}
        for name, mean in known.items():
            if mean is None or np.shape(mean) != self._moments[name].mean.shape:
                found = "has none" if mean is None else f"has statistics of shape {np.shape(mean)}"
                raise TransferMismatch(
                    f"Observation '{name}' has shape {self._moments[name].mean.shape}; the source {found}. "
                    f"Leave its normalisers out."
                )
        if state is not None:
            self.restore({name: state[name] for name in self._moments})
        else:
            self.install({name: (tensors[f"{name}.mean"], tensors[f"{name}.scale"]) for name in self._moments}, steps)

    def state(self) -> State:
        """The statistics by name."""
        return {name: moments.state() for name, moments in self._moments.items()}

    def restore(self, state: State) -> None:
        """Continue from a saved state."""
        require(state, *self._moments)
        for name, moments in self._moments.items():
            moments.restore(state[name])


class RewardScale:
    """Divides rewards by the standard deviation of the running discounted return of each stream."""

    def __init__(self, gamma: float) -> None:
        self._gamma = gamma
        self._moments = RunningMoments(())
        self._returns: dict[StreamKey, float] = {}

    def observe(self, segments: Sequence[Segment]) -> None:
        """Update the running discounted return of each stream, and its statistics."""
        seen: list[float] = []
        for segment in segments:
            running = self._returns.get(segment.stream, 0.0) if segment.start > 0 else 0.0
            # By time, the discount of the step before the first is not known any more: that of the first stands for it.
            known = [] if segment.time_discount is None else segment.time_discount.tolist()
            discounts = [known[0], *known[:-1]] if known else [self._gamma] * segment.steps
            for reward, discount in zip(segment.reward.tolist(), discounts, strict=True):
                running = running * discount + reward
                seen.append(running)
            # Only unfinished episodes are kept: streams come and go, and memory is bounded.
            self._returns.pop(segment.stream, None)
            if segment.ending is Ending.CONTINUES:
                self._returns[segment.stream] = running
        self._moments.add(np.array(seen))

    def scaled(self, batch: Any) -> Any:
        """The same batch with its rewards divided and clipped to ±10."""
        assert isinstance(batch, Transitions | Sequences)
        factor = np.float32(1.0 / math.sqrt(float(self._moments.variance) + _EPSILON))
        return replace(batch, reward=np.clip(batch.reward * factor, -_CLIP, _CLIP))

    def state(self) -> State:
        """The statistics and the running return of each stream."""
        streams = [[list(stream), value] for stream, value in self._returns.items()]
        return {"moments": self._moments.state(), "returns": streams}

    def restore(self, state: State) -> None:
        """Continue from a saved state."""
        require(state, "moments", "returns")
        self._moments.restore(state["moments"])
        self._returns = {StreamKey(*stream): value for stream, value in state["returns"]}
