"""Local runs that discount by the time that their environment gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl4sys.config import ConfigError
from rl4sys.environments import Grade, Lanes
from rl4sys.environments.lane_clocks import TimeMismatch
from rl4sys.experiments import Run
from rl4sys.seeding import Seeds
from timed_environment import TIMED, TimedCounter

from .runs import DQN, PPO, small

BY_TIME = {"environment__name": TIMED, "algorithm__horizon": "30s"}


def test_a_step_takes_the_time_that_passed_in_its_environment() -> None:
    lanes = Lanes(TimedCounter, 2, Seeds(0), Grade.E3)
    lanes.reset()
    for _ in range(3):
        step = lanes.step(np.array([1, 0]))
        assert step.elapsed is not None
        assert step.elapsed.tolist() == pytest.approx([1.0, 3.0], abs=1e-3)
    for _ in range(17):
        step = lanes.step(np.array([1, 0]))
    assert step.ending.tolist() == [1, 0]
    again = lanes.step(np.array([1, 0]))
    assert again.elapsed is not None
    assert again.elapsed.tolist() == pytest.approx([1.0, 3.0], abs=1e-3)
    lanes.close()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"environment__name": "CartPole-v1"}, r"CartPole-v1 gives no times. Let its reset and step put seconds into"),
        ({"training__pipelined": True}, "needs training.pipelined=false"),
        ({"algorithm__name": "dqn", "algorithm__n_step": 3}, "Set algorithm.n_step=1"),
    ],
)
def test_a_horizon_that_cannot_work_is_refused(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    kind = DQN if "algorithm__name" in changes else PPO
    with pytest.raises(ConfigError, match=problem):
        Run.create(small(kind, tmp_path, **(BY_TIME | changes))).close()


def test_an_environment_whose_time_goes_back_is_refused(tmp_path: Path) -> None:
    changes = BY_TIME | {"environment__kwargs": {"broken": True}}
    with (
        pytest.raises(TimeMismatch, match=r"gave info\['now'\] = .* after .*; expected a finite time"),
        Run.create(small(PPO, tmp_path, **changes)) as run,
    ):
        run.step()
