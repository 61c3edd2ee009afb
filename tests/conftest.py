"""What all tests share: loggers as they were, and a table of what was tried at the end."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

FIGURE = "figure"


@pytest.fixture(autouse=True)
def _loggers_as_they_were() -> Iterator[None]:
    """Commands that run in this process choose what is logged."""
    ours = logging.getLogger("rl4sys")
    level = ours.level
    yield
    ours.setLevel(level)


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Callable[[str, int], None]:
    """Say at the beginning of a test how many trials of which figure it makes; if it fails, that is a violation."""

    def note(figure: str, trials: int) -> None:
        request.node.user_properties.append((FIGURE, [figure, trials]))

    return note


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if "RL4SYS_STORM" not in os.environ:
        return
    rows: dict[str, list[int]] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            if report.when != "call":
                continue
            for name, value in report.user_properties:
                if name == FIGURE:
                    row = rows.setdefault(value[0], [0, 0])
                    row[0] += value[1]
                    row[1] += outcome == "failed"
    if not rows:
        return
    width = max(map(len, rows))
    terminalreporter.write_line("")
    terminalreporter.write_line(f"{'figure':<{width}}  {'trials':>9}  violations")
    for figure, (trials, violations) in sorted(rows.items()):
        said = f"0, which means < {3 / max(trials, 1):.2g} at 95 %" if not violations else f"at least {violations}"
        terminalreporter.write_line(f"{figure:<{width}}  {trials:>9,}  {said}")
    terminalreporter.write_line("0 of N means < 3/N at 95 %.")
