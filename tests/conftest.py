"""Fixtures and plug-ins of all tests: time limits, restored loggers and registries, and the table of fault tests."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rl4sys.config.registry import Registry

FIGURE = "figure"

pytest_plugins = ["tests.time_limits"]


@pytest.fixture(autouse=True)
def _restored_log_level() -> Iterator[None]:
    """Restore the log level, which commands that run in this process change."""
    ours = logging.getLogger("rl4sys")
    level = ours.level
    yield
    ours.setLevel(level)


@pytest.fixture(autouse=True)
def _restored_registries() -> Iterator[None]:
    """Remove the plug-in files a test loaded: another test's file may register the same name."""
    before = _plugins()
    yield
    loaded = _plugins() - before
    if not loaded:
        return
    ours = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("rl4sys.")]
    registries = {id(value): value for names in ours for value in names.values() if isinstance(value, Registry)}
    for registry in registries.values():
        for name in registry.names():
            if registry.type(name).__module__ in loaded:
                del registry._types[name]
    for plugin in loaded:
        del sys.modules[plugin]


def _plugins() -> set[str]:
    # A copy: a server of the session may import a module in a thread meanwhile.
    return {name for name in list(sys.modules) if name.startswith("rl4sys_plugin_")}


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Callable[[str, int], None]:
    """Record at the beginning of a test how many trials of which figure it makes; a failure counts as a violation."""

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
