"""A page with the curves of a server: processor, memory, queues, calls, data and returns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rl4sys.laboratory.server_history.history import Line, learner_series, rates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LEARNERS = 10
"""With a line of their own: those that stored most."""


def plot_history(lines: Sequence[Line], output: Path) -> Path:
    """Draw the history of a server; learners beyond the ten busiest are left out."""
    from matplotlib import dates
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 10), layout="constrained")
    cpu, memory, queues, calls, stored, returns = figure.subplots(3, 2, sharex=True).flat
    times = [line["time"] for line in lines]
    names = _busiest(lines)
    _draw(cpu, "processor (cores)", times, [line["cpu"] for line in lines], "server")
    _draw(memory, "resident memory (MB)", times, [line["memory"] / 1e6 for line in lines], "server")
    _draw(calls, "calls per second", *rates(times, [line["calls"] for line in lines]), "all")
    _draw(calls, "calls per second", *rates(times, [line["failed_calls"] for line in lines]), "failed")
    for name in names:
        _draw(cpu, "processor (cores)", *learner_series(lines, name, "cpu"), name)
        at, held = learner_series(lines, name, "memory")
        _draw(memory, "resident memory (MB)", at, [value / 1e6 for value in held], name)
        _draw(queues, "segments waiting to be learned from", *learner_series(lines, name, "queued_segments"), name)
        at, grown = rates(*learner_series(lines, name, "stored_bytes"))
        _draw(stored, "stored experience (kB per second)", at, [value / 1e3 for value in grown], name)
        _draw(returns, "mean return of the last episodes", *learner_series(lines, name, "return"), name)
    for panel in (cpu, memory, queues, calls, stored, returns):
        if panel.lines:
            panel.legend(frameon=False, fontsize=8)
    locator = dates.AutoDateLocator()  # type: ignore[no-untyped-call]
    returns.xaxis.set_major_locator(locator)
    returns.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    figure.suptitle(f"{lines[-1]['clients']} clients at the end; times are UTC")
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=110)
    return output


def _busiest(lines: Sequence[Line]) -> list[str]:
    stored: dict[str, int] = {}
    for line in lines:
        stored |= {name: values["stored_bytes"] for name, values in line["learners"].items()}
    return sorted(stored, key=lambda name: -stored[name])[:_MOST_LEARNERS]


def _draw(panel: Axes, title: str, times: Sequence[float], values: Sequence[float], label: str) -> None:
    panel.set_title(title, fontsize=10)
    if times:
        moments = [datetime.fromtimestamp(time, UTC) for time in times]
        panel.plot(moments, values, label=label, linewidth=1, marker="." if len(times) < 30 else "")  # type: ignore[arg-type]
