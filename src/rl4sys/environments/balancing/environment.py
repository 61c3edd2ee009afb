"""The simulated service as a Gymnasium environment, `rl4sys/LoadBalancing-v0`: one step is one request."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.environments.balancing.backend_view import FEATURES, context, rows
from rl4sys.environments.balancing.requests import CLASSES, RATE, SPEEDS, arrivals, speeds
from rl4sys.environments.balancing.simulation import SimulatedService

NAME = "rl4sys/LoadBalancing-v0"


class LoadBalancing(gymnasium.Env[dict[str, Any], np.int64]):
    """Chooses a backend for each request; the reward is minus the root of its latency in seconds."""

    metadata = {"render_modes": []}

    def __init__(self, *, chaos: bool = False, rate: float = RATE, requests: int = 2_000) -> None:
        """`requests`: after so many an episode is truncated. With `chaos`, it begins at a random time of a period."""
        self._chaos, self._rate, self._requests = chaos, rate, requests
        row = spaces.Box(-np.inf, np.inf, (FEATURES,), np.float32)
        self.observation_space = spaces.Dict(
            {
                "candidates": spaces.Sequence(row, stack=True),
                "context": spaces.Box(0.0, 1.0, (len(CLASSES),), np.float32),
            }
        )
        self.action_space = spaces.Discrete(len(SPEEDS))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin with idle backends."""
        super().reset(seed=seed)
        self._service = SimulatedService(speeds(chaos=self._chaos), arrivals(self._rate, self.np_random))
        self._left = self._requests
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Send the present request to a backend."""
        latency = self._service.assign(int(action))
        self._service.arrive()
        self._left -= 1
        return self._observation(), -math.sqrt(latency), False, self._left == 0, {"latency": latency}

    def _observation(self) -> dict[str, Any]:
        service = self._service
        return {"candidates": rows(service.views, service.kind, service.now), "context": context(service.kind)}
