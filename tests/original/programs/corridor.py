"""A small environment for the programs here, with the interface of Gymnasium."""

import numpy as np


class Corridor:
    """Observations of `size` numbers, rewards of 1, an end after `length` steps."""

    def __init__(self, size=8, length=12):
        self.size, self.length, self.step_count = size, length, 0
        self.rng = np.random.default_rng(0)

    def reset(self, seed=None):
        self.step_count = 0
        return self._observed(), {}

    def step(self, action):
        self.step_count += 1
        return self._observed(), 1.0, self.step_count >= self.length, False, {}

    def _observed(self):
        return self.rng.uniform(-1.0, 1.0, self.size).astype(np.float32)
