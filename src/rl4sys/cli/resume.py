"""`rl4sys resume`: go on where a run was stopped or killed."""

from __future__ import annotations

from typing import Annotated

import typer

from rl4sys.cli.output import console, errors
from rl4sys.cli.train import announce, conduct, finish
from rl4sys.experiments import Run, RunDirectory


def resume(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, or the beginning of its name.")],
    allow_fallback: Annotated[
        bool, typer.Option("--allow-fallback", help="Go on without a missing GPU, and say so.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")] = False,
) -> None:
    """Go on exactly where a run was stopped or killed.

    [bold]Examples[/]

      rl4sys resume runs/ppo-CartPole-v1-seed0-20260101-120000

      rl4sys resume ppo-CartPole       [dim](any unique beginning of a name in runs/)[/]
    """
    directory = RunDirectory.find(run)
    resumed = Run.resume(directory, allow_fallback=allow_fallback)
    if resumed.finished and directory.result.is_file():
        resumed.source.close()
        console.print(f"{directory.path} is finished: {resumed.steps:,} steps.", highlight=False, soft_wrap=True)
        return
    announce(resumed)
    errors.print(f"resuming  at step {resumed.steps:,}", highlight=False)
    conduct(resumed)
    finish(directory)
