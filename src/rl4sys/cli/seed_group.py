"""Trains or resumes runs that differ in their seed, each in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from rl4sys.cli.exit_codes import INTERRUPTED, STOPPED, SomeFailed
from rl4sys.cli.local_training import plot_returns, stop_on_signal
from rl4sys.cli.output import errors, print_table, report, show
from rl4sys.cli.where import launcher_for
from rl4sys.experiments import ExperimentConfig, Result, RunDirectory, Screen, check_combination, load_experiment
from rl4sys.experiments.preflight import fit_to_machine
from rl4sys.experiments.where import WhereSection
from rl4sys.laboratory.formatting import format_return
from rl4sys.laboratory.sweeps.sweep import run_seeds
from rl4sys.laboratory.trials.driver import TrialState
from rl4sys.laboratory.trials.launcher import Launcher, Outcome
from rl4sys.laboratory.trials.trial import Trial, TrialOptions
from rl4sys.laboratory.trials.view import TrialView


def train_seeds(
    configs: Sequence[ExperimentConfig], where: WhereSection, options: TrialOptions, settings: str | None
) -> None:
    """Train all configs, a few at a time; one that fails does not stop the others."""
    # An error that all of them have is reported once, before the first starts. Other machines may have a GPU.
    is_here = where.on == "local"
    first = fit_to_machine(configs[0], allow_fallback=options.allow_fallback) if is_here else configs[0]
    check_combination(first)
    launcher = launcher_for(where, len(configs), jobs=1, ranks=first.training.ranks)
    if settings is not None:
        report(settings)
    trials = [Trial(str(number), config, has_own_directory=False) for number, config in enumerate(configs)]
    _train(trials, launcher, options)


def resume_seeds(runs: Sequence[Path], options: TrialOptions, jobs: int | None) -> None:
    """Resume some runs on this machine, a few at a time; one that fails does not stop the others."""
    launcher = launcher_for(WhereSection(jobs=jobs), len(runs), jobs=1)
    trials = [
        Trial(str(number), load_experiment(RunDirectory(run).config), has_own_directory=False, run=run)
        for number, run in enumerate(runs)
    ]
    _train(trials, launcher, options)


def _train(trials: Sequence[Trial], launcher: Launcher, options: TrialOptions) -> None:
    name = trials[0].config.name
    report(f"runs      {len(trials)} in {trials[0].config.experiment.directory}, {launcher.describe()}")
    with Screen(errors) as screen, stop_on_signal() as stop:
        runs = run_seeds(trials, launcher, TrialView(screen, name, len(trials), noun="runs"), stop, options)
    _print_results(name, [run for run in runs if run.outcome is Outcome.FINISHED])
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
