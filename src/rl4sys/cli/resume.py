"""`rl4sys resume`: go on where a run was stopped or killed."""

from __future__ import annotations

from typing import Annotated

import typer


def resume(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, or the beginning of its name.")],
    allow_fallback: Annotated[
        bool, typer.Option("--allow-fallback", help="Go on without a missing GPU or logger, and say so.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help="Look closely: gradients, weights and a profile of updates; verbose logs, full tracebacks."
        ),
    ] = False,
) -> None:
    """Go on exactly where a run was stopped or killed.

    A damaged checkpoint is passed over for the newest good one.

    [bold]Examples[/]

      rl4sys resume runs/ppo-CartPole-v1-seed0-20260101-120000

      rl4sys resume ppo-CartPole        [dim]any unique beginning of a name in runs/[/]
    """
    from rl4sys.cli.output import show, tell
    from rl4sys.cli.single_run import announce, stop_on_signal, train_to_end
    from rl4sys.experiments import Result, Run, find_run

    directory = find_run(run)
    result = Result.read(directory.result)
    if result is not None and result.finished:
        show(f"{directory.path} is finished: {result.steps:,} steps. Train longer with a new run.")
        return
    with stop_on_signal() as stop:
        resumed = Run.resume(directory, allow_fallback=allow_fallback)
        if debug:
            resumed.debug()
        announce(resumed)
        tell(f"resuming  at step {resumed.steps:,}")
        train_to_end(resumed, stop)
