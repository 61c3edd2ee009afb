"""`rl4sys sweep`: train many variations of one experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl4sys.cli.completion import sweeps
from rl4sys.cli.options import AllowFallback, Changes, DebugTrials, Name, RunsToMake, count_trials
from rl4sys.cli.where import (
    Address,
    Cpus,
    Detach,
    Gpus,
    Jobs,
    On,
    Retries,
    Storage,
    choose_place,
    debugged,
    describe_place,
    launcher_for,
    require_place,
    require_use_of_address,
    shared_directory,
    storage_url,
    submit_if_asked,
)

if TYPE_CHECKING:
    from rl4sys.experiments.where import WhereSection
    from rl4sys.laboratory.sweeps.plan import SweepConfig
    from rl4sys.laboratory.sweeps.summary import SweepSummary
    from rl4sys.laboratory.trials.trial import Trial, TrialOptions


def sweep(
    file: Annotated[
        str,
        typer.Argument(
            metavar="SWEEP.yaml",
            autocompletion=sweeps,
            help="A sweep: a path, or the name of one that ships with RL4Sys.",
        ),
    ],
    changes: Changes = None,
    name: Name = None,
    runs: RunsToMake = None,
    on: On = None,
    address: Address = None,
    jobs: Jobs = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
    retries: Retries = None,
    storage: Storage = None,
    detach: Detach = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the trials and their resolved configs.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the summary (with --dry-run, the configs) as JSON.")
    ] = False,
    allow_fallback: AllowFallback = False,
    debug: DebugTrials = False,
) -> None:
    """Train all trials of a sweep, several at a time.

    Run it again to continue a sweep that was stopped or killed: finished trials are kept, interrupted ones are resumed
    exactly, and failed ones are tried again. Results are in runs/NAME: summary.json, summary.png and the trials.

    [bold]Examples[/]

      rl4sys sweep ppo_sweep.yaml --dry-run

      rl4sys sweep ppo_sweep.yaml --jobs 2

      rl4sys sweep my_sweep.yaml training.total_timesteps=5000 --name quick     [dim]a quick try[/]

      rl4sys sweep ppo_sweep.yaml --on ray --address auto --cpus 2 --storage s3://lab/runs
    """
    from rl4sys.experiments import check_combination
    from rl4sys.experiments.preflight import fit_to_machine
    from rl4sys.laboratory.sweeps.plan import SweepConfig, plan
    from rl4sys.laboratory.sweeps.sweep import require_unchanged_plugins
    from rl4sys.laboratory.trials.config import load_many_trials, parse_changes
    from rl4sys.laboratory.trials.trial import TrialOptions

    config = load_many_trials(SweepConfig, file, "sweeps", parse_changes(changes or ()), name=name)
    where = choose_place(
        config.where, on=on, address=address, cpus=cpus, gpus=gpus, jobs=jobs, retries=retries, storage=storage
    )
    directory = shared_directory(where) or (config.directory if runs is None else str(runs))
    config = config.model_copy(update={"where": where, "directory": directory})
    trials = plan(config)
    check_combination(trials[0].config)
    require_use_of_address(where, trials[0].config.training.collection)
    if where.on == "local":
        # An error that all trials have is reported once, before the first starts. Other machines may have a GPU.
        fit_to_machine(trials[0].config, allow_fallback=allow_fallback)
    if dry_run:
        _show(trials, where, as_json=json)
        return
    if submit_if_asked(where, detach=detach):
        return
    require_place(where, trials[0].config.training.collection)
    require_unchanged_plugins(trials)
    _run(config, trials, TrialOptions(allow_fallback, debug, storage_url(where)), as_json=json)


def _run(
    config: SweepConfig,
    trials: Sequence[Trial],
    options: TrialOptions,
    *,
    as_json: bool,
) -> None:
    from dataclasses import asdict

    from rl4sys.cli.exit_codes import INTERRUPTED, SomeFailed
    from rl4sys.cli.local_training import stop_on_signal, try_plot
    from rl4sys.cli.output import errors, print_json, report
    from rl4sys.experiments import Screen
    from rl4sys.laboratory.sweeps.plot import plot_sweep
    from rl4sys.laboratory.sweeps.sweep import run_sweep
    from rl4sys.laboratory.trials.view import TrialView

    with Screen(errors) as screen, stop_on_signal() as stop:
        if options.debug:
            launcher = debugged(config.where, stop)
        else:
            ranks = max(trial.config.training.ranks for trial in trials)
            launcher = launcher_for(config.where, len(trials), config.parallel_jobs, ranks)
        report(f"sweep     {config.place}: {count_trials(len(trials))}, {launcher.describe()}")
        summary = run_sweep(
            config,
            trials,
            launcher,
            lambda done: TrialView(screen, config.place.name, len(trials), done),
            stop,
            options,
        )
    plot = try_plot(lambda: plot_sweep(summary, config.place / "summary.png"))
    if as_json:
        print_json({**asdict(summary), "picture": None if plot is None else str(plot)})
    else:
        _tabulate(summary, config.place, plot)
    if failed := summary.with_status("failed"):
        causes = "".join(f"\n  {trial.key}: {trial.cause}" for trial in failed)
        raise SomeFailed(f"{len(failed)} of {len(trials)} trials failed; run it again to try them again:{causes}")
    finished = len(summary.with_status("finished"))
    if finished < len(trials):
        report(f"{finished} of {count_trials(len(trials))} are finished; run the same command to continue")
        raise typer.Exit(INTERRUPTED)


def _show(trials: Sequence[Trial], where: WhereSection, *, as_json: bool) -> None:
    import yaml

    from rl4sys.cli.output import print_json, report

    if as_json:
        shown = [
            {
                "key": trial.key,
                "changes": trial.changes,
                "seed": trial.seed,
                "config": trial.config.model_dump(mode="json"),
            }
            for trial in trials
        ]
        print_json({"count": len(trials), "where": where.model_dump(mode="json"), "trials": shown})
    else:
        # The C dumper if available: with a thousand trials, this takes most of the time.
        dumper = yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper
        for number, trial in enumerate(trials, start=1):
            values = trial.config.model_dump(mode="json")
            text = yaml.dump(values, Dumper=dumper, sort_keys=False, allow_unicode=True)
            typer.echo(f"---\n# trial {number} of {len(trials)}: {trial.title}\n{text}", nl=False)
    report(f"{count_trials(len(trials))} {describe_place(where)}; nothing was started.")


def _tabulate(summary: SweepSummary, place: Path, plot: Path | None) -> None:
    from rl4sys.cli.output import print_table, show
    from rl4sys.laboratory.formatting import format_return

    rows = [
        [one.label, format_return(one.score), format_return(one.deviation), f"{one.finished}/{one.trials}"]
        for one in summary.configurations
    ]
    print_table(("configuration", f"{summary.score} return", "deviation", "finished"), rows)
    show(f"summary  {place / 'summary.json'}")
    if plot is not None:
        show(f"plot     {plot}")
