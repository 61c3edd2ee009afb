"""What is decided and checked before the directory of a run is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from rl4sys.experiments import Run

from .runs import PPO, small


class Doubled(gymnasium.ObservationWrapper[Any, Any, Any]):
    """CartPole with observations beyond their bounds, which are ±1 and of another dtype."""

    def __init__(self, environment: gymnasium.Env[Any, Any]) -> None:
        super().__init__(environment)
        self.observation_space = Box(-1.0, 1.0, (4,), np.float32)

    def observation(self, observation: Any) -> Any:
        return np.full(4, 2.0, np.float64)


gymnasium.register("Doubled-v0", lambda: Doubled(gymnasium.make("CartPole-v1")), disable_env_checker=True)


def test_observations_outside_their_space_are_warned_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Run.create(small(PPO, tmp_path, environment__name="Doubled-v0")).close()
    (warning,) = (record.getMessage() for record in caplog.records if "its space is" in record.getMessage())
    assert warning.startswith("The environment returned an observation with values from 2 to 2; its space is Box(-1.0")


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "Blackjack-v1", "MountainCar-v0"])
def test_environments_that_keep_to_their_space_are_not_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    Run.create(small(PPO, tmp_path, environment__name=name)).close()
    assert "its space is" not in caplog.text
