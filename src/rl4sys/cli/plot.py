"""`rl4sys plot`: plot learning curves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.options import Debug, Json


def plot(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Run directories, or unique beginnings of names.")
    ],
    metric: Annotated[str, typer.Option(help="The metric to plot.")] = "evaluation/return",
    output: Annotated[Path, typer.Option("--output", "-o", help="The plot to write.")] = Path("plot.png"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Plot learning curves: one line per experiment, the mean over its seeds with a 95 % interval.

    [bold]Examples[/]

      rl4sys plot runs/ppo-CartPole-v1-*

      rl4sys plot runs/ppo-* runs/dqn-* --metric rollout/return --output compare.png
    """
    from rl4sys.cli.output import print_json, show
    from rl4sys.experiments import find_run
    from rl4sys.experiments import plot as draw

    written = draw([find_run(run) for run in runs], output, metric)
    if json:
        print_json({"plot": str(written)})
    else:
        show(f"wrote {written}")
