"""`rl4sys train --seed 1,2,3`: one run per seed, in processes of their own, and a summary at the end."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from rl4sys.cli.exit_codes import INTERRUPTED, STOPPED, SomeFailed
from rl4sys.cli.output import errors, print_table, report, show
from rl4sys.cli.single_run import plot_returns, stop_on_signal
from rl4sys.experiments import ExperimentConfig, Result, RunDirectory, Screen, check_combination
from rl4sys.experiments.preflight import fit_to_machine
from rl4sys.laboratory.formatting import format_return
from rl4sys.laboratory.sweeps.sweep import run_seeds
from rl4sys.laboratory.trials.driver import TrialState
from rl4sys.laboratory.trials.launcher import Outcome
from rl4sys.laboratory.trials.local_launcher import LocalLauncher
from rl4sys.laboratory.trials.trial import TrialOptions
from rl4sys.laboratory.trials.view import TrialView


def train_seeds(configs: Sequence[ExperimentConfig], jobs: int, options: TrialOptions, settings: str | None) -> None:
    """Train all configs, a few at a time; one that fails does not stop the others."""
    # An error that all of them have is reported once, before the first starts.
    check_combination(fit_to_machine(configs[0], allow_fallback=options.allow_fallback))
    if settings is not None:
        report(settings)
    launcher = LocalLauncher(min(jobs, len(configs)))
    report(f"runs      {len(configs)} in {configs[0].experiment.directory}, {launcher.describe()}")
    with Screen(errors) as screen, stop_on_signal() as stop:
        view = TrialView(screen, configs[0].name, len(configs), noun="runs")
        runs = run_seeds(configs, launcher, view, stop, options)
    _print_results(configs[0].name, [run for run in runs if run.outcome is Outcome.FINISHED])
    _print_unfinished(runs)
    failed = [f"\n  {run.title}: {run.cause}" for run in runs if run.outcome is Outcome.FAILED]
    if failed:
        raise SomeFailed(f"{len(failed)} of {len(runs)} runs failed:{''.join(failed)}")
    if any(run.outcome is not Outcome.FINISHED and run.alert is None for run in runs):
        raise typer.Exit(INTERRUPTED)
    if any(run.outcome is Outcome.STOPPED for run in runs):
        raise typer.Exit(STOPPED)


def _print_results(name: str, finished: Sequence[TrialState]) -> None:
    directories = [RunDirectory(run.run) for run in finished if run.run is not None]
    if not directories:
        return
    rows = []
    for directory in directories:
        result = Result.read(directory.result)
        if result is not None:
            final, best = format_return(result.evaluation), format_return(result.best)
            rows.append([str(directory.path), f"{result.steps:,}", final, best])
    print_table(("run", "steps", "final", "best"), rows)
    curve = plot_returns(directories, directories[0].path.parent / f"{name}.png")
    if curve is not None:
        show(f"learning curve  {curve}")


def _print_unfinished(runs: Sequence[TrialState]) -> None:
    """Print the resume command of every unfinished run."""
    for run in runs:
        if run.outcome is Outcome.FAILED:
            output = f"; its output is in {run.output}" if run.output is not None else ""
            resume = f"; once the cause is fixed: rl4sys resume {run.run}" if run.run is not None else ""
            report(f"failed: {run.title}{output}{resume}")
        elif run.outcome is Outcome.STOPPED and run.run is not None:
            how = "interrupted" if run.alert is None else f"stopped by an alert ({run.alert})"
            report(f"{how}: {run.title}; resume with: rl4sys resume {run.run}")
    if unstarted := [run.title for run in runs if run.run is None and run.outcome is not Outcome.FAILED]:
        report(f"not started: {', '.join(unstarted)}")
