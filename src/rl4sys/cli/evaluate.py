"""`rl4sys evaluate`: evaluate a trained policy."""

from __future__ import annotations

from typing import Annotated

import typer

from rl4sys.cli.options import Best, Debug, Json, OneRun


def evaluate(
    run: OneRun,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to run.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the environments.")] = 0,
    best: Best = True,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Evaluate a trained policy: run episodes with the exploit policy in fresh environments.

    [bold]Examples[/]

      rl4sys evaluate runs/ppo-CartPole-v1-seed0-20260101-120000

      rl4sys evaluate ppo-CartPole --episodes 100 --json
    """
    from rl4sys.cli.output import print_json, print_table, report
    from rl4sys.experiments import evaluate_run, find_run

    directory = find_run(run)
    step, outcome, skipped = evaluate_run(directory, episodes, seed, best=best)
    for reason in skipped:
        report(f"warning: skipped a damaged checkpoint ({reason}); using that of step {step:,}.")
    summary = {
        "run": str(directory.path),
        "step": step,
        "episodes": episodes,
        "mean": outcome.mean,
        "deviation": outcome.deviation,
        "min": min(outcome.returns),
        "max": max(outcome.returns),
        "mean_length": sum(outcome.lengths) / len(outcome.lengths),
    }
    if json:
        print_json({**summary, "returns": outcome.returns, "lengths": outcome.lengths, "skipped": skipped})
        return
    columns = ("checkpoint", "episodes", "mean return", "deviation", "min", "max", "mean length")
    numbers = [f"{summary[name]:.2f}" for name in ("mean", "deviation", "min", "max", "mean_length")]
    print_table(columns, [[f"step {step:,}", str(episodes), *numbers]])
