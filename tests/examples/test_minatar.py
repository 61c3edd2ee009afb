"""The MinAtar example, with the real games where they are installed, else with a painted one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest

from rl4sys.environments import Grade
from rl4sys.experiments import Run, load_experiment

EXAMPLE = Path(__file__).parents[2] / "examples" / "minatar" / "ppo_minatar_breakout.yaml"
SMALL = [
    "training.total_timesteps=64",
    "training.eval_frequency=0",
    "training.num_eval_episodes=1",
    "environment.num_envs=2",
    "environment.max_episode_steps=30",
    "buffer.size=32",
    "algorithm.minibatch_size=32",
    "experiment.threads=1",
    "logging.terminal=false",
    "logging.tensorboard=false",
]


class PaintedEnvironment:
    """The interface of `minatar.Environment`: chance moves a point about, and each action repeats it may be late."""

    def __init__(self, game: str, sticky_action_prob: float) -> None:
        self._sticky, self.last_action = sticky_action_prob, 0

    def seed(self, seed: int) -> None:
        self._random = np.random.RandomState(seed)

    def reset(self) -> None:
        self._place, self._time = 5, 0

    def act(self, action: int) -> tuple[int, bool]:
        self.last_action = self.last_action if self._random.rand() < self._sticky else action
        self._place = (self._place + self.last_action + self._random.randint(3)) % 10
        self._time += 1
        return int(self._place == 0), self._time == 20

    def state(self) -> Any:
        return np.arange(400).reshape(10, 10, 4) % 10 == self._place

    def state_shape(self) -> list[int]:
        return [10, 10, 4]

    def minimal_action_set(self) -> list[int]:
        return [0, 1, 3]


@pytest.fixture(autouse=True)
def minatar(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("minatar") is None:
        module = ModuleType("minatar")
        module.Environment = PaintedEnvironment  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "minatar", module)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))


def test_the_example_trains_and_resumes_exactly(tmp_path: Path) -> None:
    config = load_experiment(EXAMPLE, [*SMALL, f"experiment.directory={tmp_path}"])
    expected = Run.create(config).train().fingerprint
    with Run.create(config) as run:
        run.step()
        run.save()
        assert run.components.grade is Grade.E1
    resumed = Run.resume(run.directory)
    assert {**resumed.train().fingerprint, "metrics": ""} == {**expected, "metrics": ""}
    assert resumed.inexact == ()
