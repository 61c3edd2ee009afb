"""The report on the model of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.runs import PETS, PPO
from experiments.trained import trained_run
from rl4sys.config import ConfigError
from rl4sys.experience import Ending, Segment, StreamKey
from rl4sys.experiments import RunDirectory
from rl4sys.experiments.models.model_plot import plot_model
from rl4sys.experiments.models.model_report import report_on_model, windows


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return trained_run(PETS, tmp_path_factory.mktemp("trained"), environment__name="Pendulum-v1")


def test_a_report_repeats_and_covers_every_fresh_step(run: RunDirectory) -> None:
    first, second = (report_on_model(run, steps=80, horizon=6) for _ in range(2))
    assert first.fresh_steps == 80
    assert first.open_loop.shape == first.copy_last.shape == (6,)
    assert np.isfinite(first.open_loop).all()
    assert first.open_loop.tolist() == second.open_loop.tolist()
    assert first.coverage is not None
    assert (np.diff(first.coverage) >= 0.0).all()
    assert first.disagreement > 0.0


def test_the_plot_is_written(run: RunDirectory, tmp_path: Path) -> None:
    report = report_on_model(run, steps=40, horizon=4)
    assert plot_model(report, "run", tmp_path / "made" / "model.png").stat().st_size > 1_000


def test_an_algorithm_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="trained with ppo, which learns no model"):
        report_on_model(trained_run(PPO, tmp_path))


def test_a_horizon_longer_than_every_episode_is_refused(run: RunDirectory) -> None:
    with pytest.raises(ConfigError, match="lower --horizon"):
        report_on_model(run, steps=40, horizon=400)


def segment(steps: int) -> Segment:
    counted = np.arange(steps + 1, dtype=np.float32)
    acted = counted[:steps]
    return Segment(StreamKey("a"), 0, 0, 0, Ending.TRUNCATED, {"x": counted}, acted[:, None], acted, {}, {})


def test_windows_are_rows_in_order_of_one_segment() -> None:
    pieces = [segment(7), segment(2), segment(4)]
    found = windows(pieces, 3, 2)
    assert len(found.reward) == 3 + 1 + 2
    assert found.observation["x"][1].tolist() == [2.0, 3.0, 4.0]
    assert found.reward[1, :2].tolist() == [2.0, 3.0]
    assert not found.acted[:, -1].any()
