from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from tests.experiments.runs import DQN, small

from rl4sys.experiments import MetricRecord, Run, Screen, Terminal
from rl4sys.experiments.loggers.terminal import format_duration, sparkline


def ticking(seconds: float) -> Callable[[], float]:
    """A clock that is that much later each time that it is read."""
    now = [0.0]

    def read() -> float:
        now[0] += seconds
        return now[0]

    return read


def shown(*, terminal: bool, seconds: float = 0.01) -> str:
    output = io.StringIO()
    screen = Screen(Console(file=output, force_terminal=terminal, width=120))
    with screen:
        display = Terminal(screen, "mine[1]", total=400, clock=ticking(seconds))
        for step in range(10, 401, 10):
            metrics = {"rollout/return": float(step), "train/entropy": 1.0, "train/policy_loss": 0.25}
            display.log(MetricRecord(step, metrics, {"steps_per_second": 1234.0}))
        display.log(MetricRecord(400, {"evaluation/return": 3.25, "evaluation/deviation": 0.5}, {}))
    return output.getvalue()


def test_without_a_terminal_lines_come_by_the_clock() -> None:
    quick, slow = shown(terminal=False).splitlines(), shown(terminal=False, seconds=1.0).splitlines()
    assert len(quick) == 3
    assert 30 < len(slow) < 41
    assert slow[1] == "mine[1]: step 20/400, 01:16 left, 5 steps/s, return 20.0, policy_loss 0.25"
    assert slow[-2].startswith("mine[1]: step 400/400, 00:00 left")
    assert slow[-1] == "mine[1]: step 400, evaluation 3.2 ± 0.5"


def test_a_terminal_shows_progress_and_a_curve() -> None:
    assert "mine[1]" in shown(terminal=True)
    assert "▁▁▂" in shown(terminal=True)


def test_a_run_that_learns_at_every_step_shows_its_progress_between_records(tmp_path: Path) -> None:
    output = io.StringIO()
    with Screen(Console(file=output, width=120)) as screen:
        run = Run.create(small(DQN, tmp_path, training__log_frequency=100_000))
        run.train([], callbacks=[Terminal(screen, "mine", total=256, clock=ticking(0.6))])
    lines = output.getvalue().splitlines()
    assert len(lines) > 5
    assert "left" in lines[-1]
    assert "loss" in lines[-1]


def test_a_duration_is_short_to_read() -> None:
    assert format_duration(61.2) == "01:01"
    assert format_duration(7322) == "2:02:02"


def test_a_curve_spans_its_values_and_passes_over_what_is_not_a_number() -> None:
    assert sparkline([0.0, float("nan"), 1.0]) == "▁█"
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert sparkline([]) == ""
