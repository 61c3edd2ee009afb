"""`rl4sys compare`: which of some experiments is better, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.runs_option import Debug, Json, ManyRuns, Runs


def compare(
    runs_wanted: ManyRuns,
    metrics: Annotated[str, typer.Option(help="What to compare, separated by commas: return, loss, …")] = "return",
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture to write.")] = Path("compare.png"),
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare experiments. Runs that differ in their seed only are one experiment.

    Of the last value of each run: the interquartile mean with a 95 % interval from a stratified bootstrap over seeds,
    and how likely a run of one experiment beats one of another. Then the settings that differ, and a picture.

    [bold]Examples[/]

      rl4sys compare ppo-CartPole dqn-CartPole --metrics return,loss

      rl4sys compare runs/ppo-*-seed1-* runs/sac-* --metrics return --output ppo-or-sac.png
    """
    from rl4sys.cli.output import print_json, print_table, tell
    from rl4sys.cli.output import show as say
    from rl4sys.laboratory.comparison import export as exporting
    from rl4sys.laboratory.comparison.comparison import compare as compare_runs
    from rl4sys.laboratory.comparison.learning_curves import draw
    from rl4sys.laboratory.run_index.index import open_index

    with open_index(runs, tell) as index:
        chosen = index.find_all(runs_wanted)
    comparison = compare_runs(chosen, [name.strip() for name in metrics.split(",")])
    for remark in comparison.remarks:
        tell(f"note: {remark}")
    if json:
        picture = draw(comparison.groups, comparison.metrics, output)
        print_json({**comparison.facts(), "picture": str(picture)})
        return
    tables = [exporting.results_table(comparison)]
    tables += [exporting.odds_table(comparison)] if comparison.odds else []
    tables += [exporting.settings_table(comparison)] if comparison.differences else []
    for table in tables:
        say(table.title)
        print_table(table.columns, table.rows)
        say("")
    if any(score.seeds < 3 for score in comparison.scores):
        tell("note: fewer than three seeds say little about what another seed would give")
    # Last, since it may not be possible to write here, and tables can be read all the same.
    say(f"wrote {draw(comparison.groups, comparison.metrics, output)}")
