from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rl4sys.run_files import METRICS
from rl4sys.ui.curve_events import CurveFollower
from rl4sys.ui.live_updates import Event
from rl4sys.ui.metric_curves import MetricCurves, thinned

RETURN = "evaluation/return"


def line(step: int, **metrics: float | None) -> str:
    named = {name.replace("__", "/"): value for name, value in metrics.items()}
    return json.dumps({"step": step, "metrics": named, "timing": {"seconds": step / 10}}) + "\n"


def write(run: Path, *lines: str) -> Path:
    (run / METRICS).write_text("".join(lines))
    return run


def append(run: Path, *texts: str) -> None:
    with (run / METRICS).open("a") as file:
        file.write("".join(texts))


def points(curves: MetricCurves, run: Path, metric: str = RETURN) -> list[list[float]]:
    return curves.read(run, metric).points().tolist()


def test_a_curve_has_the_points_of_all_lines_with_its_metric(tmp_path: Path) -> None:
    write(
        tmp_path,
        line(1, rollout__return=0.5),
        line(2, rollout__return=1.0, evaluation__return=-3e-5),
        line(3, episodes=4),
    )
    assert points(MetricCurves(), tmp_path) == [[2, -3e-5]]
    assert points(MetricCurves(), tmp_path, "rollout/return") == [[1, 0.5], [2, 1.0]]
    assert points(MetricCurves(), tmp_path, "episodes") == [[3, 4]]
    assert points(MetricCurves(), tmp_path, "timing/seconds") == [[1, 0.1], [2, 0.2], [3, 0.3]]


def test_values_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, line(1, evaluation__return=1.0), line(2, evaluation__return=None), line(3, evaluation__return=3.0))
    assert points(MetricCurves(), tmp_path) == [[1, 1.0], [3, 3.0]]


def test_lines_that_another_program_laid_out_are_parsed(tmp_path: Path) -> None:
    other = json.dumps({"metrics": {RETURN: 5}, "timing": {}, "step": 7}, separators=(", ", ": ")) + "\n"
    write(tmp_path, other, "not json\n", line(8, evaluation__return=6.0))
    assert points(MetricCurves(), tmp_path) == [[7, 5], [8, 6]]


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    curves, second = MetricCurves(), line(2, evaluation__return=2.0)
    write(tmp_path, line(1, evaluation__return=1.0), second[:20])
    assert points(curves, tmp_path) == [[1, 1.0]]
    append(tmp_path, second[20:])
    assert points(curves, tmp_path) == [[1, 1.0], [2, 2.0]]


def test_a_file_that_was_cut_by_resuming_is_read_again(tmp_path: Path) -> None:
    curves, first = MetricCurves(), line(1, evaluation__return=1.0)
    write(tmp_path, first, line(2, evaluation__return=2.0))
    curves.read(tmp_path, RETURN)
    write(tmp_path, first, line(2, evaluation__return=9.0), line(3, evaluation__return=3.0))
    assert points(curves, tmp_path) == [[1, 1.0], [2, 9.0], [3, 3.0]]
    assert curves.read(tmp_path, RETURN).generation == 1


def test_a_run_without_metrics_has_no_points(tmp_path: Path) -> None:
    assert points(MetricCurves(), tmp_path) == []


def test_old_curves_are_forgotten(tmp_path: Path) -> None:
    curves = MetricCurves(most=2)
    write(tmp_path, line(1, a__b=1.0))
    first = curves.read(tmp_path, "a/b")
    curves.read(tmp_path, "a/c")
    curves.read(tmp_path, "a/d")
    assert curves.read(tmp_path, "a/b") is not first


def test_thinning_keeps_the_extremes() -> None:
    values = np.sin(np.arange(50_000.0))
    values[12_345], values[23_456] = 9.0, -9.0
    kept = thinned(np.column_stack([np.arange(50_000.0), values]))
    assert len(kept) <= 2_000
    assert [12_345, 9.0] in kept.tolist()
    assert [23_456, -9.0] in kept.tolist()
    assert (np.diff(kept[:, 0]) > 0).all()


def test_short_curves_are_not_thinned() -> None:
    few = np.column_stack([np.arange(2_000.0), np.arange(2_000.0)])
    assert thinned(few) is few


@pytest.fixture
def follower(tmp_path: Path) -> CurveFollower:
    return CurveFollower(MetricCurves(), write(tmp_path, line(1, evaluation__return=1.0)), [RETURN])


def test_a_page_gets_the_whole_curve_and_then_what_is_added(follower: CurveFollower) -> None:
    assert follower.read() == [Event("curves", {RETURN: [[1], [1.0]]})]
    assert follower.read() == []
    append(follower.run, line(2, evaluation__return=2.0))
    assert follower.read() == [Event("points", {RETURN: [[2], [2.0]]})]


def test_a_page_gets_the_whole_curve_again_after_a_cut(follower: CurveFollower) -> None:
    follower.read()
    write(follower.run, line(5, evaluation__return=5.0))
    assert follower.read() == [Event("curves", {RETURN: [[5], [5.0]]})]


def test_a_page_that_got_many_points_gets_a_thinned_curve(follower: CurveFollower) -> None:
    follower.read()
    append(follower.run, *(line(step, evaluation__return=float(step % 7)) for step in range(2, 1_500)))
    (event,) = follower.read()
    assert (event.name, len(event.data[RETURN][0])) == ("curves", 1_499)
