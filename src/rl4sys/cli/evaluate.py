"""`rl4sys evaluate`: how good a trained policy is."""

from __future__ import annotations

from typing import Annotated

import typer


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
    from rl4sys.cli.output import print_json, print_table, tell
    from rl4sys.experiments import evaluate_run, find_run

    directory = find_run(run)
    step, outcome, skipped = evaluate_run(directory, episodes, seed, best=best)
    for reason in skipped:
        tell(f"warning: passed over a damaged checkpoint ({reason}); using the one of step {step:,}.")
    facts = {
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
        print_json({**facts, "returns": outcome.returns, "lengths": outcome.lengths, "skipped": skipped})
        return
    columns = ("checkpoint", "episodes", "mean return", "deviation", "min", "max", "mean length")
    numbers = [f"{facts[name]:.2f}" for name in ("mean", "deviation", "min", "max", "mean_length")]
    print_table(columns, [[f"step {step:,}", str(episodes), *numbers]])
