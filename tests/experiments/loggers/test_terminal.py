from __future__ import annotations

import io

from rich.console import Console

from rl4sys.experiments import MetricRecord, Screen, Terminal
from rl4sys.experiments.loggers.terminal import sparkline


def shown(*, terminal: bool) -> str:
    output = io.StringIO()
    screen = Screen(Console(file=output, force_terminal=terminal, width=100))
    with screen:
        display = Terminal(screen, "mine[1]", total=400)
        for step in range(10, 401, 10):
            display.log(MetricRecord(step, {"rollout/return": float(step)}, {"steps_per_second": 1234.0}))
        display.log(MetricRecord(400, {"evaluation/return": 3.25, "evaluation/deviation": 0.5}, {}))
    return output.getvalue()


def test_without_a_terminal_a_run_is_a_few_plain_lines() -> None:
    lines = shown(terminal=False).splitlines()
    assert len(lines) <= 22
    assert lines[0] == "mine[1]: step 10/400, 1,234 steps/s, return 10.0"
    assert lines[-2].startswith("mine[1]: step 400/400")
    assert lines[-1] == "mine[1]: step 400, evaluation 3.2 ± 0.5"


def test_a_terminal_shows_progress_and_a_curve() -> None:
    assert "mine[1]" in shown(terminal=True)
    assert "▁▁▂" in shown(terminal=True)


def test_a_curve_spans_its_values_and_passes_over_what_is_not_a_number() -> None:
    assert sparkline([0.0, float("nan"), 1.0]) == "▁█"
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert sparkline([]) == ""
