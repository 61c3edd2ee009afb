"""One page that shows what the client costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rl4sys.client.client_level import ClientLevel
from rl4sys.laboratory.client_profile.report import ProfileReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = dict(zip(ClientLevel, ("tab:gray", "tab:blue", "tab:green", "tab:orange"), strict=True))


def plot_profile(report: ProfileReport, output: Path) -> Path:
    """Throughput, time in `act`, processor time and traffic of every level."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    throughput, times, cpu, rates = figure.subplots(2, 2).flat
    _throughput(throughput, report)
    _times(times, report)
    _cpu(cpu, report)
    _traffic(rates, report)
    clients = ", ".join(report.clients)
    figure.suptitle(f"What the client costs: {clients}, {report.rounds} rounds, {report.seconds:.0f} s")
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=120)
    return output


def _throughput(panel: Axes, report: ProfileReport) -> None:
    positions = range(len(report.levels))
    for position, level in zip(positions, report.levels, strict=True):
        colour, shares = (
            _COLOURS[level.level],
            [speeds[level.level] / speeds[ClientLevel.OFF] for speeds in report.blocks],
        )
        panel.plot(np.full(len(shares), position), shares, "o", color=colour, alpha=0.3, markersize=4)
        low, high = level.throughput.low, level.throughput.high
        if low is not None and high is not None:
            panel.plot([position, position], [low, high], color=colour, linewidth=4)
        panel.plot([position], [level.throughput.value], "D", color=colour)
    panel.set_xticks(positions, [_label(level.level, level.is_resolved) for level in report.levels])
    panel.axhline(1.0, color="black", linewidth=0.6)
    panel.set_title("throughput relative to `off`: rounds, mean, 95 % interval", fontsize=10)
    panel.set_ylabel("decisions per second, relative")


def _label(level: ClientLevel, is_resolved: bool) -> str:
    return level if is_resolved else f"{level}\n(not resolved)"


def _times(panel: Axes, report: ProfileReport) -> None:
    names = list(report.levels[0].act_microseconds)
    for level in report.levels:
        panel.plot(
            names,
            [level.act_microseconds[name] for name in names],
            "o-",
            color=_COLOURS[level.level],
            label=level.level,
        )
    if report.floor_microseconds is not None:
        panel.axhline(report.floor_microseconds, color="black", linestyle=":", label="bare products")
    panel.set_yscale("log")
    panel.set_ylabel("µs")
    panel.set_title("time in `act`", fontsize=10)
    panel.legend(frameon=False)


def _cpu(panel: Axes, report: ProfileReport) -> None:
    names = [level.level.value for level in report.levels]
    caller = [level.caller_cpu_microseconds for level in report.levels]
    background = [level.background_cpu_microseconds for level in report.levels]
    panel.bar(names, caller, color="tab:blue", label="threads of the system")
    panel.bar(names, background, bottom=caller, color="tab:orange", label="threads of the client and gRPC")
    panel.set_ylabel("µs per decision")
    panel.margins(y=0.25)
    panel.set_title("processor time", fontsize=10)
    panel.legend(frameon=False)


def _traffic(panel: Axes, report: ProfileReport) -> None:
    names = [level.level.value for level in report.levels]
    positions = np.arange(len(names))
    panel.bar(positions - 0.2, [level.sent_bytes_per_second / 1e3 for level in report.levels], 0.4, label="sent")
    panel.bar(
        positions + 0.2, [level.received_bytes_per_second / 1e3 for level in report.levels], 0.4, label="received"
    )
    panel.set_xticks(positions, names)
    panel.set_ylabel("kB per second")
    panel.margins(y=0.25)
    growth = f"{report.memory / 1e6:.0f} MB resident, {report.memory_growth / 1e6:+.1f} MB since the first round"
    panel.set_title(f"traffic; {growth}", fontsize=10)
    panel.legend(frameon=False)
