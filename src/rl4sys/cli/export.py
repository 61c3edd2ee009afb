"""`rl4sys export`: runs as tables for papers, web pages and spreadsheets."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl4sys.cli.options import Debug, ManyRuns, Runs

if TYPE_CHECKING:
    from rl4sys.laboratory.comparison.comparison import Comparison


def export(
    runs_wanted: ManyRuns,
    format_: Annotated[str, typer.Option("--format", help="latex, markdown, csv, json or html.")] = "markdown",
    metrics: Annotated[str, typer.Option(help="Metrics of the tables, separated by commas.")] = "return",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", show_default=False, help="The file to write; by default standard output."),
    ] = None,
    runs: Runs = Path("runs"),
    debug: Debug = False,
) -> None:
    """Export runs as tables (latex, markdown, html with learning curves), one row per run (csv), or in full (json).

    [bold]Examples[/]

      rl4sys export ppo-CartPole dqn-CartPole --format latex --output results.tex

      rl4sys export ppo-CartPole --format csv > runs.csv
    """
    from rl4sys.atomic_files import replace_file
    from rl4sys.cli.output import report, show
    from rl4sys.config import ConfigError
    from rl4sys.laboratory.comparison.comparison import compare
    from rl4sys.laboratory.comparison.export import ExportFormat, as_csv
    from rl4sys.laboratory.comparison.export import export as text_of
    from rl4sys.laboratory.run_index.index import open_index

    if format_ not in tuple(ExportFormat):
        raise ConfigError(f"--format {format_}: expected one of {', '.join(ExportFormat)}.")
    with open_index(runs, report) as index:
        chosen = index.find_all(runs_wanted)
    if format_ == ExportFormat.CSV:
        # One row per run: nothing is compared.
        text = as_csv(chosen)
    else:
        comparison = compare(chosen, [name.strip() for name in metrics.split(",")])
        for remark in comparison.remarks:
            report(f"note: {remark}")
        plot = _plot(comparison) if format_ == ExportFormat.HTML else None
        text = text_of(chosen, comparison, ExportFormat(format_), plot)
    if output is None:
        sys.stdout.write(text)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    replace_file(output, text.encode())
    show(f"wrote {output}")


def _plot(comparison: Comparison) -> bytes:
    from rl4sys.laboratory.comparison.learning_curves import plot_curves

    with tempfile.TemporaryDirectory() as directory:
        return plot_curves(comparison.groups, comparison.metrics, Path(directory) / "curves.png").read_bytes()
