"""`rl4sys plot`: learning curves as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run directories, or beginnings of names.")],
    metric: Annotated[str, typer.Option(help="What to draw.")] = "evaluation/return",
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture to write.")] = Path("plot.png"),
    debug: Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")] = False,
) -> None:
    """Draw learning curves: one line per experiment, the mean over its seeds with a 95 % interval.

    [bold]Examples[/]

      rl4sys plot runs/ppo-CartPole-v1-*

      rl4sys plot runs/ppo-* runs/dqn-* --metric rollout/return --output compare.png
    """
    from rl4sys.cli.output import show
    from rl4sys.experiments import find_run
    from rl4sys.experiments import plot as draw

    show(f"wrote {draw([find_run(run) for run in runs], output, metric)}")
