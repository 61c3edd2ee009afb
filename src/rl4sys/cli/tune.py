"""`rl4sys tune`: search for good settings with Optuna."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl4sys.cli.completion import experiments, studies
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
    from rl4sys.experiments import ExperimentConfig
    from rl4sys.laboratory.studies.config import TuneConfig
    from rl4sys.laboratory.studies.study_summary import TuneSummary
    from rl4sys.laboratory.trials.trial import TrialOptions

_SHOWN = 10


class TunerUnavailable(RuntimeError):
    """Optuna is not installed."""


def tune(
    file: Annotated[
        str,
        typer.Argument(
            metavar="TUNE.yaml",
            autocompletion=studies,
            help="A study: a path, or the name of one that ships with RL4Sys.",
        ),
    ],
    changes: Changes = None,
    base: Annotated[
        str | None, typer.Option(autocompletion=experiments, help="The experiment to tune; by default 'base_config'.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials of the whole study, including earlier ones; by default 'trials'.")
    ] = None,
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
        bool, typer.Option("--dry-run", help="Only show the search space and an example config.")
    ] = False,
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Only serve Optuna's dashboard of the study, for a browser.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the summary (with --dry-run, the search space) as JSON.")
    ] = False,
    allow_fallback: AllowFallback = False,
    debug: DebugTrials = False,
) -> None:
    """Search for good settings with Optuna: values near those of good trials are tried, and bad trials are pruned.

    A study with a section `population` trains runs side by side instead, and replaces the worst by copies of the best
    with changed settings: population-based training.

    Run it again to continue a study that was stopped or killed, or with more --trials to search longer. Results are in
    runs/NAME: best.yaml for `rl4sys train`, summary.json, plots, the journal and the trials.

    [bold]Examples[/]

      rl4sys tune tuning/ppo.yaml --trials 40 --jobs 2

      rl4sys tune ppo.yaml --dry-run

      rl4sys tune sac.yaml --base my_experiment.yaml

      rl4sys tune dqn.yaml training.total_timesteps=20000     [dim]shorter trials[/]

      rl4sys tune tuning/ppo_population.yaml --jobs 2     [dim]adapt settings during training[/]

      rl4sys tune ppo.yaml --dashboard     [dim]look at the study, also while it runs[/]
    """
    if importlib.util.find_spec("optuna") is None:
        raise TunerUnavailable("Tuning needs the package 'optuna'. Install it with: pip install 'rl4sys[tune]'")
    from rl4sys.config import ConfigError
    from rl4sys.experiments import check_combination
    from rl4sys.experiments.preflight import fit_to_machine
    from rl4sys.laboratory.studies.config import TuneConfig
    from rl4sys.laboratory.studies.study import require_comparable_plugins
    from rl4sys.laboratory.trials.config import load_many_trials, parse_changes
    from rl4sys.laboratory.trials.trial import TrialOptions

    config = load_many_trials(TuneConfig, file, "tuning", parse_changes(changes or ()), base, name)
    if trials is not None and config.population is not None:
        raise ConfigError("--trials has no effect with a population; set population.size in the study")
    if trials is not None:
        config = config.model_copy(update={"trials": trials})
    where = choose_place(
        config.where, on=on, address=address, cpus=cpus, gpus=gpus, jobs=jobs, retries=retries, storage=storage
    )
    directory = shared_directory(where) or (config.directory if runs is None else str(runs))
    config = config.model_copy(update={"where": where, "directory": directory})
    if config.population is not None:
        config.boundaries()
        if where.on != "local" or where.storage is not None:
            raise ConfigError(
                "A population copies runs from one trial to another, so it trains on this machine, without --on, "
                "--address and --storage; on a Ray cluster, use rl4sys.RunTrainable with PopulationBasedTraining"
            )
    if dashboard:
        from rl4sys.cli.study_dashboard import open_dashboard

        open_dashboard(config.place)
        return
    example = config.example()
    require_use_of_address(where, example.training.collection)
    if where.on == "local":
        # An error that all trials have is reported once, before the first starts. Other machines may have a GPU.
        fit_to_machine(example, allow_fallback=allow_fallback)
    if dry_run:
        check_combination(example)
        _show(config, example, as_json=json)
        return
    if submit_if_asked(where, detach=detach):
        return
    require_place(where, example.training.collection)
    require_comparable_plugins(config)
    _run(config, TrialOptions(allow_fallback, debug, storage_url(where)), as_json=json)


def _run(config: TuneConfig, options: TrialOptions, *, as_json: bool) -> None:
    from dataclasses import asdict

    from rl4sys.cli.exit_codes import INTERRUPTED
    from rl4sys.cli.local_training import stop_on_signal, try_plot
    from rl4sys.cli.output import errors, print_json, report
    from rl4sys.experiments import Screen
    from rl4sys.laboratory.studies.population_study import run_population
    from rl4sys.laboratory.studies.results import plot_history, plot_importances, summarize_study
    from rl4sys.laboratory.studies.study import run_study
    from rl4sys.laboratory.trials.view import TrialView

    title, place = config.place.name, config.place
    count, noun = (config.trials, "trials") if config.population is None else (_parts(config), "parts")
    run = run_study if config.population is None else run_population
    with Screen(errors) as screen, stop_on_signal() as stop:
        if options.debug:
            launcher = debugged(config.where, stop)
        else:
            launcher = launcher_for(config.where, _at_once(config), config.parallel_jobs)
        report(f"study     {place}: {_extent(config)}, {launcher.describe()}")
        study = run(
            config,
            launcher,
            lambda over: TrialView(screen, title, count, over, noun),
            stop,
            options,
        )
    summary = summarize_study(config, study)
    summary.write(place / "summary.json")
    plots = [
        try_plot(lambda: plot_history(study, title, place / "history.png")),
        try_plot(lambda: plot_importances(study, title, place / "importance.png")),
    ]
    if as_json:
        print_json(asdict(summary))
    else:
        _tabulate(summary, [plot for plot in plots if plot is not None], has_population=config.population is not None)
    over = len(summary.trials) - summary.unfinished
    if config.population is not None and summary.unfinished:
        report(f"{summary.unfinished} of {_extent(config)} are not trained yet; run the same command to continue")
        raise typer.Exit(INTERRUPTED)
    if config.population is None and over < config.trials:
        report(f"{over} of {count_trials(config.trials)} have ended; run the same command to continue")
        raise typer.Exit(INTERRUPTED)


def _at_once(config: TuneConfig) -> int:
    return config.trials if config.population is None else config.population.size


def _parts(config: TuneConfig) -> int:
    """How often runs of a population are trained from one comparison to the next."""
    return _at_once(config) * len(config.boundaries())


def _extent(config: TuneConfig) -> str:
    if config.population is None:
        return count_trials(config.trials)
    return f"a population of {config.population.size} runs, compared {len(config.boundaries()) - 1} times"


def _show(config: TuneConfig, example: ExperimentConfig, *, as_json: bool) -> None:
    import yaml

    from rl4sys.cli.output import print_json, report

    values = example.model_dump(mode="json")
    if as_json:
        where = config.where.model_dump(mode="json")
        print_json({"count": _at_once(config), "where": where, "space": config.space, "example": values})
    else:
        for part in ({"space": config.space}, values):
            typer.echo("---\n" + yaml.safe_dump(part, sort_keys=False, allow_unicode=True), nl=False)
    report(f"{_extent(config)} {describe_place(config.where)}, such as this one; nothing was started.")


def _tabulate(summary: TuneSummary, plots: list[Path], *, has_population: bool) -> None:
    from rl4sys.cli.output import print_table, show
    from rl4sys.laboratory.formatting import format_return
    from rl4sys.laboratory.trials.names import label
    from rl4sys.run_files import MANIFEST

    finished = [trial for trial in summary.trials if trial.status == "finished"]
    ranked = sorted(finished, key=lambda trial: -(trial.score or 0.0))[:_SHOWN]
    rows = [[str(trial.number), format_return(trial.score), label(trial.values)] for trial in ranked]
    print_table(("trial", "return", "values"), rows)
    counts = {status: sum(trial.status == status for trial in summary.trials) for status in ("given up", "failed")}
    show(f"{len(finished)} finished, {counts['given up']} given up early, {counts['failed']} failed")
    for trial in summary.trials:
        if trial.status == "failed":
            show(f"  trial {trial.number} failed: {trial.cause}")
    if summary.best is not None and summary.best.parent is not None:
        show("how the settings of the best were adapted:")
        line = summary.descent(summary.best)
        for ancestor, child in itertools.zip_longest(line, line[1:]):
            until = "to the end" if child is None else f"until step {child.from_step:,}"
            show(f"  trial {ancestor.number}, {until}: {label(ancestor.values)}")
    for plot in plots:
        show(f"plot      {plot}")
    if summary.best is not None and has_population:
        (run,) = Path(summary.best_config or "").parent.glob(f"trial-{summary.best.number:04d}/*/*/{MANIFEST}")
        show(f"evaluate the best with  rl4sys evaluate {run.parent}")
    if summary.best_config is not None:
        show(f"train the best with  rl4sys train {summary.best_config}")
