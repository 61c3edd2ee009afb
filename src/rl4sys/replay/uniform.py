"""Replay in which every transition is as likely as any other."""

from __future__ import annotations

import numpy as np

from rl4sys.experience import Transitions
from rl4sys.replay.columns import Columns
from rl4sys.replay.pace import Ratio
from rl4sys.replay.replay_buffer import ReplayBuffer
from rl4sys.replay.storage import Storage


class UniformBuffer(ReplayBuffer):
    """Keeps the newest `capacity` transitions and draws batches from them, with replacement."""

    def __init__(
        self, capacity: int, pace: Ratio, rng: np.random.Generator, n_step: int = 1, storage: Storage | None = None
    ) -> None:
        super().__init__(Columns(capacity, n_step, storage), pace, rng)

    def _draw(self) -> Transitions:
        ids = self._rng.integers(self.first, self.total, self._batch_size)
        return self._columns.batch(ids, weight=np.ones(self._batch_size, np.float32))
