from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.pictures import SavedFigures

from rl4sys.experiments import NothingToPlot, Run, RunDirectory, plot
from rl4sys.experiments.learning_curves import Curve, band, group_by_experiment

from .runs import PPO, small


def run(tmp_path: Path, steps: int = 32, **changes: object) -> RunDirectory:
    started = Run.create(small(PPO, tmp_path, training__total_timesteps=steps, **changes))
    started.train()
    return started.directory


def test_runs_that_differ_in_their_seed_make_one_line(tmp_path: Path) -> None:
    runs = [run(tmp_path, seed=0), run(tmp_path, seed=1), run(tmp_path, algorithm__lr=0.1)]
    assert {label: len(members) for label, members in group_by_experiment(runs).items()} == {
        "ppo-CartPole-v1": 2,
        "ppo-CartPole-v1 (2)": 1,
    }
    image = plot(runs, tmp_path / "plots" / "curve.png", "evaluation/return")
    assert image.read_bytes().startswith(b"\x89PNG")


def test_an_unknown_metric_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(NothingToPlot, match=r"no metric 'loss'; they have .*rollout/return"):
        plot([run(tmp_path)], tmp_path / "curve.png", "loss")
    assert not (tmp_path / "curve.png").exists()


def test_a_run_that_was_not_evaluated_yet_shows_its_training_returns(tmp_path: Path) -> None:
    started = Run.create(small(PPO, tmp_path))
    started.train(stop=lambda: started.steps >= 96)
    assert plot([started.directory], tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_without_metrics_is_refused(tmp_path: Path) -> None:
    with Run.create(small(PPO, tmp_path)) as started:
        started.directory.metrics.unlink()
    with pytest.raises(NothingToPlot, match=r"nothing to plot yet: no metrics in .*metrics.jsonl"):
        plot([started.directory], tmp_path / "curve.png", "evaluation/return")


def test_the_band_holds_the_mean_and_reaches_no_further_than_every_run() -> None:
    curves = [Curve(np.array([0.0, last]), np.array([low, low + last])) for last, low in ((10.0, 0.0), (20.0, 2.0))]
    summary = band(curves, np.random.default_rng(0))
    assert (summary.steps[0], summary.steps[-1], summary.runs) == (0.0, 10.0, 2)
    np.testing.assert_allclose(summary.mean, summary.steps + 1.0)
    assert (summary.low <= summary.mean).all()
    assert (summary.mean <= summary.high).all()


def test_a_run_with_one_evaluation_is_a_visible_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated_once = run(tmp_path)
    saved = SavedFigures(monkeypatch)
    plot([evaluated_once], tmp_path / "curve.png")
    assert len(saved.visible_lines()) == 1
