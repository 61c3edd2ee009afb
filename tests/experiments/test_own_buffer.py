from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rl4sys.checkpoints import ReplayRows
from rl4sys.config import ConfigError
from rl4sys.experiments import Run
from rl4sys.replay import BufferContext, OnceFresh, Ratio, TrajectoryBuffer, UniformBuffer, register_buffer
from rl4sys.replay.config import UniformConfig

from .runs import DQN, PPO, small


class Mine(UniformBuffer):
    """A replay buffer of a user's own."""


@register_buffer("tests_mine")
class MineConfig(UniformConfig):
    """Named by no algorithm."""

    def build(
        self, pace: OnceFresh | Ratio, rng: np.random.Generator, window: int, context: BufferContext | None = None
    ) -> Mine:
        super().build(pace, rng, window)
        assert isinstance(pace, Ratio)
        return Mine(self.size, pace, rng, window)


MINE = {"type": "tests_mine", "size": 150}


def test_a_buffer_of_ones_own_is_used_and_saved_though_no_algorithm_names_it(tmp_path: Path) -> None:
    config = small(DQN, tmp_path, buffer=MINE)
    run = Run.create(config)
    assert isinstance(run.learner.buffer, Mine)
    run.train(stop=lambda: run.steps >= 100)
    assert list((run.directory.path / "replay").iterdir())
    assert Run.resume(run.directory).train().fingerprint == Run.create(config).train().fingerprint


def test_a_buffer_that_does_not_take_the_pace_of_an_algorithm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ppo cannot learn from a 'tests_mine' buffer\. .*buffer.type=trajectory"):
        Run.create(small(PPO, tmp_path, buffer=MINE))


def test_only_buffers_with_rows_are_saved_in_rows() -> None:
    assert isinstance(Mine(8, Ratio(1, 0, 4), np.random.default_rng(0)), ReplayRows)
    assert not isinstance(TrajectoryBuffer(OnceFresh(8, 0)), ReplayRows)
