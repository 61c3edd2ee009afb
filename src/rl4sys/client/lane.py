"""A lane: consecutive episodes that share a stream, its random numbers and its recording buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rl4sys.client.observation_reader import ObservationReader
from rl4sys.client.segment_buffer import SegmentBuffer
from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import Array, StreamKey
from rl4sys.policy import ActionSpec, BoxAction, DiscreteAction, KeyedNoise, PolicySpec, noise_size


class Lane:
    """A stream of consecutive episodes with its own random numbers and its own recording buffers."""

    def __init__(self, stream: StreamKey, seed: int, first_episode: int) -> None:
        self.stream = stream
        self.episode = first_episode - 1
        self.decisions = 0
        """Decisions taken in this lane: the step for which random numbers are drawn."""
        self.noise = KeyedNoise(seed, [stream], 0)
        self.reader = ObservationReader(())
        self.finish_action = _action_finisher(DiscreteAction(1))
        """Turns a decision into the action for the system: shifted to its first choice, or clipped to its bounds.

        What is recorded is the decision itself."""
        self._seed = seed
        self._spec: PolicySpec | None = None
        self._noise_size = 0
        self._spare: list[SegmentBuffer] = []

    def prepare(self, snapshot: Snapshot) -> None:
        """Adapt to a policy; does nothing for the present one. Random numbers are keyed by step, so none repeats."""
        if self._spec is snapshot.spec:
            return
        self._spec = snapshot.spec
        self.reader = ObservationReader(snapshot.form.schema.observation)
        self.finish_action = _action_finisher(snapshot.spec.action)
        size = noise_size(snapshot.spec)
        if size != self._noise_size:
            self.noise, self._noise_size = KeyedNoise(self._seed, [self.stream], size), size

    def buffer(self, snapshot: Snapshot, length: int) -> SegmentBuffer:
        """A buffer to record into, reused where one is free."""
        while self._spare:
            buffer = self._spare.pop()
            if buffer.snapshot.form is snapshot.form and buffer.length == length:
                return buffer
        self.prepare(snapshot)
        return SegmentBuffer(snapshot, length)

    def give_back(self, buffer: SegmentBuffer) -> None:
        """Take back a buffer whose contents were copied."""
        if not self._spare:
            self._spare.append(buffer)


def _action_finisher(kind: ActionSpec) -> Callable[[Array], Any]:
    match kind:
        case DiscreteAction(start=start):
            return lambda action: int(action[0]) + start
        case BoxAction(low=low, high=high):
            least, most = np.array(low, np.float32), np.array(high, np.float32)
            return lambda action: np.clip(action[0], least, most)
    return lambda action: action[0].copy()
