"""`rl4sys evaluate`: how good a trained policy is."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from rl4sys.cli.output import console, print_json
from rl4sys.experiments import RunDirectory, evaluate_run


def evaluate(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, or the beginning of its name.")],
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to run.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the environments.")] = 0,
    best: Annotated[bool, typer.Option("--best/--latest", help="Which checkpoint to evaluate.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")] = False,
) -> None:
    """Run a trained policy, doing its best, in fresh environments.

    [bold]Examples[/]

      rl4sys evaluate runs/ppo-CartPole-v1-seed0-20260101-120000

      rl4sys evaluate ppo-CartPole --episodes 100 --json
    """
    directory = RunDirectory.find(run)
    step, outcome = evaluate_run(directory, episodes, seed, best=best)
    if json:
        print_json(
            {
                "run": str(directory.path),
                "step": step,
                "episodes": episodes,
                "mean": outcome.mean,
                "deviation": outcome.deviation,
                "returns": outcome.returns,
                "lengths": outcome.lengths,
            }
        )
        return
    table = Table("checkpoint", "episodes", "mean return", "deviation", "min", "max", "mean length")
    table.add_row(
        f"step {step:,}",
        str(episodes),
        f"{outcome.mean:.2f}",
        f"{outcome.deviation:.2f}",
        f"{min(outcome.returns):.2f}",
        f"{max(outcome.returns):.2f}",
        f"{sum(outcome.lengths) / len(outcome.lengths):.1f}",
    )
    console.print(table)
