"""`rl4sys compare`: compare experiments, with confidence intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.options import Debug, Json, ManyRuns, Runs


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
    from rl4sys.laboratory.comparison import export
    from rl4sys.laboratory.comparison.comparison import compare as compare_runs
    from rl4sys.laboratory.comparison.learning_curves import plot_curves
    from rl4sys.laboratory.run_index.index import open_index

    with open_index(runs, report) as index:
        chosen = index.find_all(runs_wanted)
    comparison = compare_runs(chosen, [name.strip() for name in metrics.split(",")])
    for remark in comparison.remarks:
        report(f"note: {remark}")
    if json:
        plot = plot_curves(comparison.groups, comparison.metrics, output)
        print_json({**comparison.json_values(), "picture": str(plot)})
        return
    tables = [export.results_table(comparison)]
    tables += [export.improvement_table(comparison)] if comparison.improvements else []
    tables += [export.settings_table(comparison)] if comparison.differences else []
    for table in tables:
        say(table.title)
        print_table(table.columns, table.rows)
        say("")
    if any(score.seeds < 3 for score in comparison.scores):
        report("note: with fewer than three seeds the intervals say little about other seeds")
    # Last, so that the tables are printed even if the plot cannot be written.
    say(f"wrote {plot_curves(comparison.groups, comparison.metrics, output)}")
