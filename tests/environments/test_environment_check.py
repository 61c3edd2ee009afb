"""What `rl4sys check-env` says about environments of users."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from rl4sys.environments import Grade, Lanes, newest_version
from rl4sys.environments.environment_check import check_environment
from rl4sys.environments.old_interface import OldInterface
from rl4sys.seeding import Seeds


class Walk(gymnasium.Env[Any, Any]):
    """Eight steps; what is wrong with it is given."""

    observation_space = gymnasium.spaces.Box(0.0, 8.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, fault: str = "") -> None:
        self.fault, self.time = fault, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32) if self.fault == "reset" else (np.zeros(1, np.float32), {})

    def step(self, action: Any) -> Any:
        self.time += 1
        scale = {"values": 100.0, "chance": 1.0 - 0.1 * np.random.default_rng().random()}.get(self.fault, 1.0)
        observation = np.full(3 if self.fault == "shape" else 1, self.time * scale, np.float32)
        reward, ended = (None if self.fault == "reward" else 1.0), self.time >= 8
        return (observation, reward, ended, {}) if self.fault == "step" else (observation, reward, ended, False, {})


def test_a_sound_environment_has_no_problems() -> None:
    report = check_environment(Walk, steps=20)
    assert (report.problems, report.remarks, report.is_repeatable, report.episodes) == ([], [], True, 2)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            "step",
            "step returned 4 values, as in the old gym; expected observation, reward, terminated, truncated, info",
        ),
        ("reset", "reset returned ndarray; expected observation and info"),
        ("values", "step returned an observation outside its space, with values from 100 to 100"),
        ("shape", "step returned an observation outside its space, with shape (3,)"),
        ("reward", "step returned None as a reward; expected one finite number"),
    ],
)
def test_each_fault_is_one_helpful_line(fault: str, message: str) -> None:
    problems = check_environment(lambda: Walk(fault), steps=10).problems
    assert message in problems[0]


def test_chance_without_the_seed_is_remarked() -> None:
    assert "The same seed and actions give another episode" in check_environment(lambda: Walk("chance"), 10).remarks[0]


@pytest.mark.parametrize("fault", ["step", "reset"])
def test_training_refuses_the_old_interface_in_the_same_words(fault: str) -> None:
    def act() -> None:
        lanes = Lanes(lambda: Walk(fault), 1, Seeds(0), Grade.E3)
        lanes.reset()
        lanes.step(np.zeros(1, np.int64))

    with pytest.raises(OldInterface, match=f"environment's {fault} returned"):
        act()


def test_the_newest_version_of_an_environment_is_known() -> None:
    assert newest_version("CartPole") == newest_version("gym/CartPole/v0") == "CartPole-v1"
    assert newest_version("Nothing") is None
