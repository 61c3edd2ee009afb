"""`rl4sys compare`, `plot` and `export`: the results of several runs as tables and learning curves."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl4sys.cli.completion import export_formats
from rl4sys.cli.options import Debug, Json, ManyRuns, Runs, SomeRuns

if TYPE_CHECKING:
    from rl4sys.laboratory.comparison.comparison import Comparison


def compare(
    runs_wanted: ManyRuns,
    metrics: Annotated[str, typer.Option(help="Metrics to compare, separated by commas: return, loss, …")] = "return",
    output: Annotated[Path, typer.Option("--output", "-o", help="The plot to write.")] = Path("compare.png"),
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare experiments; runs that differ in their seed only are one experiment.

    Prints the interquartile mean of the last values with a 95 % interval (stratified bootstrap over seeds), the
    probability that a run of one experiment beats a run of another, and the settings that differ. Writes a plot of
    the learning curves.

    [bold]Examples[/]

      rl4sys compare ppo-CartPole dqn-CartPole --metrics return,loss

      rl4sys compare runs/ppo-*-seed1-* runs/sac-* --metrics return --output ppo-or-sac.png
    """
    from rl4sys.cli.output import print_json, print_table, report
    from rl4sys.cli.output import show as say
    from rl4sys.laboratory.comparison.comparison import compare as compare_runs
    from rl4sys.laboratory.comparison.export import improvement_table, results_table, settings_table
    from rl4sys.laboratory.comparison.learning_curves import plot_curves
    from rl4sys.laboratory.run_index.index import record_at

    chosen = [record_at(Path(run)) for run in runs_wanted]
    comparison = compare_runs(chosen, [name.strip() for name in metrics.split(",")])
    for remark in comparison.remarks:
        report(f"note: {remark}")
    if json:
        written = plot_curves(comparison.groups, comparison.metrics, output)
        print_json({**comparison.json_values(), "picture": str(written)})
        return
    tables = [results_table(comparison)]
    tables += [improvement_table(comparison)] if comparison.improvements else []
    tables += [settings_table(comparison)] if comparison.differences else []
    for table in tables:
        say(table.title)
        print_table(table.columns, table.rows)
        say("")
    if any(score.seeds < 3 for score in comparison.scores):
        report("note: with fewer than three seeds the intervals say little about other seeds")
    # Last, so that the tables are printed even if the plot cannot be written.
    say(f"wrote {plot_curves(comparison.groups, comparison.metrics, output)}")


def plot(
    runs_wanted: SomeRuns = None,
    metric: Annotated[str, typer.Option(help="The metric to plot.")] = "evaluation/return",
    server: Annotated[
        Path | None,
        typer.Option(metavar="DATA", help="Plot a server's history instead, from its data directory."),
    ] = None,
    hours: Annotated[float | None, typer.Option(min=0, help="With --server: only the last hours.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The plot to write.")] = Path("plot.png"),
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Plot learning curves: one line per experiment, the mean over its seeds with a 95 % interval.

    [bold]Examples[/]

      rl4sys plot runs/ppo-CartPole-v1-*

      rl4sys plot runs/ppo-* runs/dqn-* --metric rollout/return --output compare.png

      rl4sys plot --server rl4sys-data --hours 24 --output server.png
    """
    from rl4sys.cli.output import print_json, show
    from rl4sys.config import ConfigError
    from rl4sys.experiments import RunDirectory
    from rl4sys.experiments import plot as draw
    from rl4sys.laboratory.server_history import plot_history, read_history

    if bool(runs_wanted) == (server is not None):
        raise ConfigError("Name runs to plot, or the data directory of a server with --server.")
    if server is None:
        written = draw([RunDirectory(Path(run)) for run in runs_wanted or ()], output, metric)
    else:
        written = plot_history(read_history(server, hours), output)
    if json:
        print_json({"plot": str(written)})
    else:
        show(f"wrote {written}")


def export(
    runs_wanted: ManyRuns,
    format_: Annotated[
        str,
        typer.Option("--format", autocompletion=export_formats, help="latex, markdown, csv, tidy, json or html."),
    ] = "markdown",
    metrics: Annotated[str, typer.Option(help="Metrics of the tables, separated by commas.")] = "return",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", show_default=False, help="The file to write; by default standard output."),
    ] = None,
    runs: Runs = Path("runs"),
    debug: Debug = False,
) -> None:
    """Export runs as tables (latex, markdown, html with learning curves) or in full (json).

    csv has one row per run with its settings and last metrics; tidy has one row per run, step and metric, with the
    settings that differ between the runs.

    [bold]Examples[/]

      rl4sys export ppo-CartPole dqn-CartPole --format latex --output results.tex

      rl4sys export ppo-CartPole --format csv > runs.csv

      rl4sys export ppo-CartPole dqn-CartPole --format tidy --output curves.csv
    """
    from rl4sys.atomic_files import replace_file
    from rl4sys.cli.output import report, show
    from rl4sys.config import ConfigError
    from rl4sys.laboratory.comparison.comparison import compare as compare_runs
    from rl4sys.laboratory.comparison.export import ExportFormat, as_csv, as_tidy_csv
    from rl4sys.laboratory.comparison.export import export as text_of
    from rl4sys.laboratory.run_index.index import record_at

    if format_ not in tuple(ExportFormat):
        raise ConfigError(f"--format {format_}: expected one of {', '.join(ExportFormat)}.")
    chosen = [record_at(Path(run)) for run in runs_wanted]
    if format_ in (ExportFormat.CSV, ExportFormat.TIDY):
        # Nothing is compared.
        text = as_csv(chosen) if format_ == ExportFormat.CSV else as_tidy_csv(chosen)
    else:
        comparison = compare_runs(chosen, [name.strip() for name in metrics.split(",")])
        for remark in comparison.remarks:
            report(f"note: {remark}")
        curves = _curves(comparison) if format_ == ExportFormat.HTML else None
        text = text_of(chosen, comparison, ExportFormat(format_), curves)
    if output is None:
        sys.stdout.write(text)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    replace_file(output, text.encode())
    show(f"wrote {output}")


def _curves(comparison: Comparison) -> bytes:
    """The learning curves as a PNG."""
    from rl4sys.laboratory.comparison.learning_curves import plot_curves

    with tempfile.TemporaryDirectory() as directory:
        return plot_curves(comparison.groups, comparison.metrics, Path(directory) / "curves.png").read_bytes()
