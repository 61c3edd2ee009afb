"""What a shell completes: names of runs, algorithms, shipped configs and export formats. Never imports torch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import typer

ALGORITHMS = (
    *("bc", "ddpg", "dqn", "dreamer", "droq", "iql", "pets", "planet", "ppo", "ppo_rnd"),
    *("qr_dqn", "sac", "sql", "td3", "td3_bc", "tqc"),
)
"""The registered algorithms, which are listed here because importing them imports torch."""


def run_names(context: typer.Context, incomplete: str) -> list[str]:
    """The runs below `--runs`, and `last`."""
    from rl4sys.run_finder import LAST, runs_below

    root = Path(context.params.get("runs") or "runs")
    return _beginning(incomplete, [LAST, *sorted(runs_below(root))])


def algorithm_names(incomplete: str) -> list[str]:
    """The algorithms of RL4Sys."""
    return _beginning(incomplete, ALGORITHMS)


def export_formats(incomplete: str) -> list[str]:
    """The formats of `rl4sys export`."""
    from rl4sys.laboratory.comparison.export import ExportFormat

    return _beginning(incomplete, ExportFormat)


def experiments(incomplete: str) -> list[str]:
    """Configs for `rl4sys train`."""
    return _configs("experiments", incomplete)


def sweeps(incomplete: str) -> list[str]:
    """Configs for `rl4sys sweep`."""
    return _configs("sweeps", incomplete)


def studies(incomplete: str) -> list[str]:
    """Configs for `rl4sys tune`."""
    return _configs("tuning", incomplete)


def experiments_and_runs(context: typer.Context, incomplete: str) -> list[str]:
    """Configs for `rl4sys train`, and runs."""
    return experiments(incomplete) + run_names(context, incomplete)


def _configs(folder: str, incomplete: str) -> list[str]:
    """The shipped configs of a folder, and those in the current directory."""
    from rl4sys.config import packaged_configs

    shipped = (packaged_configs() / folder).glob("*.yaml")
    return _beginning(incomplete, sorted({path.name for path in (*shipped, *Path().glob("*.yaml"))}))


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [str(name) for name in names if name.startswith(incomplete)]
