"""Several runs at once, with one view of all of them, and what came of them at the end."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from rl4sys.cli.conduct import interruptible, picture_of, score
from rl4sys.cli.exit_codes import INTERRUPTED, STOPPED, SomeFailed
from rl4sys.cli.output import errors, print_table, show, tell
from rl4sys.experiments import ExperimentConfig, Result, RunDirectory, Screen, check_combination
from rl4sys.experiments.preflight import fit_to_machine
from rl4sys.laboratory.trials.launcher import Outcome
from rl4sys.laboratory.trials.local_launcher import LocalLauncher
from rl4sys.laboratory.trials.side_by_side import SideRun, train_side_by_side
from rl4sys.laboratory.trials.view import TrialView


def run_all(configs: Sequence[ExperimentConfig], jobs: int, *, allow_fallback: bool, debug: bool = False) -> None:
    """Train all of them, a few at a time; one that fails does not stop the others."""
    # What is wrong with all of them is told once, before the first.
    check_combination(fit_to_machine(configs[0], allow_fallback=allow_fallback))
    launcher = LocalLauncher(min(jobs, len(configs)))
    tell(f"runs      {len(configs)} in {configs[0].experiment.directory}, {launcher.describe()}")
    wishes = {"allow_fallback": allow_fallback, "debug": debug}
    with Screen(errors) as screen, interruptible() as stop:
        view = TrialView(screen, configs[0].name, len(configs), noun="runs")
        runs = train_side_by_side(configs, launcher, view, stop, wishes)
    _summarize([run for run in runs if run.outcome is Outcome.FINISHED])
    _tell_the_rest(runs)
    failed = [f"\n  {run.title}: {run.cause}" for run in runs if run.outcome is Outcome.FAILED]
    if failed:
        raise SomeFailed(f"{len(failed)} of {len(runs)} runs failed:{''.join(failed)}")
    if any(run.outcome is not Outcome.FINISHED and run.cause is None for run in runs):
        raise typer.Exit(INTERRUPTED)
    if any(run.outcome is Outcome.STOPPED for run in runs):
        raise typer.Exit(STOPPED)


def _summarize(finished: Sequence[SideRun]) -> None:
    directories = [RunDirectory(run.directory) for run in finished if run.directory is not None]
    if not directories:
        return
    rows = []
    for directory in directories:
        result = Result.read(directory.result)
        if result is not None:
            rows.append([str(directory.path), f"{result.steps:,}", score(result.evaluation), score(result.best)])
    print_table(("run", "steps", "final", "best"), rows)
    picture = picture_of(directories, directories[0].path.parent / f"{finished[0].config.name}.png")
    if picture is not None:
        show(f"learning curve  {picture}")


def _tell_the_rest(runs: Sequence[SideRun]) -> None:
    """Which runs are not finished, and how to go on with them."""
    for run in runs:
        if run.outcome is Outcome.FAILED:
            printed = f"; what it printed is in {run.output}" if run.output is not None else ""
            resume = f"; once the cause is gone: rl4sys resume {run.directory}" if run.directory is not None else ""
            tell(f"failed: {run.title}{printed}{resume}")
        elif run.outcome is Outcome.STOPPED and run.directory is not None:
            how = "interrupted" if run.cause is None else f"stopped by an alert ({run.cause})"
            tell(f"{how}: {run.title}; go on with: rl4sys resume {run.directory}")
    if unstarted := [run.title for run in runs if run.directory is None and run.outcome is not Outcome.FAILED]:
        tell(f"not started: {', '.join(unstarted)}")
