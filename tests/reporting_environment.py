"""An environment that reports numbers in `info`: how far it is, and at the end whether it succeeded."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

REPORTING = "reporting_environment:Reporting"
REGISTERED = "reporting_environment:Reporting-v0"
"""The same for a vector backend, which wants an id."""


class Reporting(gymnasium.Env[Any, Any]):
    """Four steps; a success if the first observation was above zero. Its progress is 1, 2, 3 and 4."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        self._seen = self.np_random.uniform(-1.0, 1.0, 2).astype(np.float32)
        return self._seen.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        is_last = self._steps == 4
        info: dict[str, Any] = {"progress": self._steps, "name": "reporting"}
        if is_last:
            info["is_success"] = bool(self._seen[0] > 0)
        return self._seen.copy(), 1.0, is_last, False, info


gymnasium.register("Reporting-v0", Reporting)
