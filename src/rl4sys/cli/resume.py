"""`rl4sys resume`: continue a run that was stopped or killed."""

from __future__ import annotations

from rl4sys.cli.options import AllowFallback, DebugTraining, OneRun


def resume(
    run: OneRun,
    allow_fallback: AllowFallback = False,
    debug: DebugTraining = False,
) -> None:
    """Resume a run exactly where it was stopped or killed.

    If the latest checkpoint is damaged, the newest intact one is used.

    [bold]Examples[/]

      rl4sys resume runs/ppo-CartPole-v1-seed0-20260101-120000

      rl4sys resume ppo-CartPole        [dim]the beginning of a name in runs/, if it is unique[/]
    """
    from rl4sys.cli.output import report, show
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
        report(f"resuming  at step {resumed.steps:,}")
        train_to_end(resumed, stop)
