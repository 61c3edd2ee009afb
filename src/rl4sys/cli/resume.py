"""`rl4sys resume`: continue runs that were stopped or killed, or train them longer or with other settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl4sys.cli.completion import run_names
from rl4sys.cli.options import AllowFallback, DebugTraining, Runs
from rl4sys.cli.where import Jobs

if TYPE_CHECKING:
    from rl4sys.experiments import RunDirectory
    from rl4sys.laboratory.trials.trial import TrialOptions


def resume(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|KEY=VALUE",
            autocompletion=run_names,
            help="A run directory, the beginning of its name, last, or its URL in storage; and settings to change. Of "
            "several runs with this beginning, those of one experiment that are unfinished.",
        ),
    ],
    from_step: Annotated[
        int | None,
        typer.Option(min=0, help="Go back to the checkpoint of this step; what was saved after it is removed."),
    ] = None,
    jobs: Jobs = None,
    runs: Runs = Path("runs"),
    allow_fallback: AllowFallback = False,
    debug: DebugTraining = False,
) -> None:
    """Resume a run exactly where it was stopped or killed, or train on with more steps or other settings.

    If the latest checkpoint is damaged, the newest intact one is used. Runs that differ in their seed only are resumed
    together. A setting that changes what is learned is recorded, and the run is marked as not exact.

    [bold]Examples[/]

      rl4sys resume runs/ppo-CartPole-v1-seed0-20260101-120000

      rl4sys resume last

      rl4sys resume last training.total_timesteps=2e6       [dim]train a finished run longer[/]

      rl4sys resume last --from-step 50000 algorithm.lr=1e-4

      rl4sys resume ppo-CartPole        [dim]the only unfinished run of this name, or all seeds of one experiment[/]

      rl4sys resume s3://lab/runs/first-try      [dim]copied to runs/, and stored again at each checkpoint[/]
    """
    from rl4sys.cli.options import pulled
    from rl4sys.cli.output import report
    from rl4sys.config import ConfigError
    from rl4sys.experiments import RunDirectory
    from rl4sys.experiments.ranks import RankPlace
    from rl4sys.laboratory.run_index.resumable_runs import find_resumable
    from rl4sys.laboratory.trials.trial import TrialOptions

    names = [text for text in arguments if "=" not in text or "://" in text]
    settings = tuple(text for text in arguments if text not in names)
    if not names:
        raise ConfigError(f"Which run? Give its name before {settings[0]}, or last.")
    options = TrialOptions(allow_fallback, debug, settings=settings, from_step=from_step)
    place = RankPlace.from_environment(os.environ)
    if place is not None:
        from rl4sys.cli.rank_training import resume_as_rank

        resume_as_rank(place, names[0], options, runs)
        return
    url = names[0] if len(names) == 1 and "://" in names[0] else None
    paths = [str(path) for name in names for path in (pulled(name, runs) if "://" in name else [name])]
    found = find_resumable(paths, runs, lambda note: report(f"note: {note}"))
    if len(found) == 1:
        _resume_one(RunDirectory(found[0]), options, url)
        return
    from rl4sys.cli.seed_group import resume_seeds

    resume_seeds(found, options, jobs)


def _resume_one(directory: RunDirectory, options: TrialOptions, url: str | None) -> None:
    """Resume a run in this process, or on ranks that are started here."""
    from rl4sys.cli.local_training import resume_run
    from rl4sys.cli.output import show
    from rl4sys.experiments import Result, load_experiment
    from rl4sys.laboratory.training import require_steps_left

    result = Result.read(directory.result)
    if result is not None and result.finished and not options.changes_runs:
        show(
            f"{directory.path} is finished: {result.steps:,} steps. Train longer with: "
            f"rl4sys resume {directory.path} training.total_timesteps={2 * result.steps}"
        )
        return
    require_steps_left(directory, options.settings, options.from_step)
    ranks = load_experiment(directory.config).training.ranks
    if ranks == 1:
        resume_run(directory, options, url)
        return
    from rl4sys.cli.rank_training import resume_ranks

    resume_ranks(directory, ranks, options, url)
