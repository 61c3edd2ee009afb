"""What transitions should be, by looking up every step in a list of everything that was added."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl4sys.experience import Array, Segment, StreamKey

Step = tuple[Segment, int]


class Oracle:
    """Keeps whole segments."""

    def __init__(self, capacity: int, n_step: int) -> None:
        self._capacity, self._n_step = capacity, n_step
        self.steps: list[Step] = []

    def add(self, segment: Segment) -> None:
        self.steps += [(segment, t) for t in range(segment.steps)]

    def window(self, number: int) -> list[Step]:
        """The steps that a transition spans: up to `n_step` of one episode, as far as they are held without a gap."""
        held = self.steps[-self._capacity :]
        table: dict[tuple[StreamKey, int, int], Step] = {(s.stream, s.episode, s.start + t): (s, t) for s, t in held}
        s, t = self.steps[number]
        keys = [(s.stream, s.episode, s.start + t + k) for k in range(self._n_step)]
        length = next((k for k, key in enumerate(keys) if key not in table), self._n_step)
        return [table[key] for key in keys[:length]]

    def transitions(self, ids: Array) -> dict[str, Any]:
        """The columns of a batch of transitions, without those that depend on how ids were drawn."""
        windows = [self.window(number) for number in ids.tolist()]
        starts, ends = [window[0] for window in windows], [window[-1] for window in windows]
        template = self.steps[0][0]
        reward = np.zeros((len(ids), self._n_step), np.float32)
        for row, window in enumerate(windows):
            reward[row, : len(window)] = [s.reward[t] for s, t in window]
        return {
            "observation": {n: np.stack([s.observation[n][t] for s, t in starts]) for n in template.observation},
            "action": np.stack([s.action[t] for s, t in starts]),
            "reward": reward[:, 0] if self._n_step == 1 else reward,
            "discount": np.stack([s.discount()[t] for s, t in ends]),
            "next_observation": {n: np.stack([s.observation[n][t + 1] for s, t in ends]) for n in template.observation},
            "span": np.array([len(window) for window in windows]),
            "extras": {n: np.stack([s.extras[n][t] for s, t in starts]) for n in template.extras},
        }
