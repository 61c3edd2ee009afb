"""Trains or resumes a run on several ranks: started here, or by torchrun."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
import typer

from rl4sys.cli.exit_codes import RANK_LOST
from rl4sys.cli.local_training import resume_run, train_new
from rl4sys.cli.options import pulled
from rl4sys.cli.rank_launcher import RankLauncher
from rl4sys.experiments import ExperimentConfig, RunDirectory, check_combination, find_run, load_experiment
from rl4sys.experiments.preflight import fit_to_machine
from rl4sys.experiments.ranks import RankPlace, RanksMisconfigured
from rl4sys.experiments.ranks.rank_group import RankLost
from rl4sys.experiments.ranks.run_rank import run_rank
from rl4sys.laboratory.trials.trial import TrialOptions

if TYPE_CHECKING:
    from rl4sys.experiments.ranks.rank_group import RankGroup


def train_ranks(config: ExperimentConfig, options: TrialOptions, settings: str | None) -> None:
    """Train a new run on `training.ranks` ranks, which are started on this machine."""
    ranks = config.training.ranks
    config = _checked(config, options, ranks)
    if config.experiment.device.startswith("cuda") and (found := torch.cuda.device_count()) < ranks:
        raise RanksMisconfigured(
            f"training.ranks: {ranks} ranks need a GPU each, and torch finds {found} here; use {found} ranks, "
            f"device=cpu, or several machines with torchrun."
        )
    values = {"config": config.model_dump(mode="json"), "settings": settings}
    RankLauncher(config.training.ranks).run(values | options.to_values())


def resume_ranks(directory: RunDirectory, ranks: int, options: TrialOptions, url: str | None) -> None:
    """Resume a run on as many ranks as it has, which are started on this machine."""
    RankLauncher(ranks).run({"run": str(directory.path), "url": url} | options.to_values())


def lead(group: RankGroup, values: Mapping[str, Any], began: Callable[[str], None]) -> None:
    """As rank 0: train or resume what the values say. `began` is called with the run directory."""
    options = TrialOptions.from_values(values)
    if "run" in values:
        resume_run(find_run(values["run"]), options, values["url"], group, began)
    else:
        train_new(load_experiment(values["config"]), options, values["settings"], group, began)


def train_as_rank(
    place: RankPlace, config: ExperimentConfig, options: TrialOptions, settings: str | None, *, ranks_given: bool
) -> None:
    """Train a new run as one of the ranks that torchrun has started."""
    asked = config.training.ranks
    if asked != place.ranks and (ranks_given or asked > 1):
        raise RanksMisconfigured(_different_count(asked, place))
    config = config.model_copy(update={"training": config.training.model_copy(update={"ranks": place.ranks})})
    config = _checked(config, options, place.local_ranks)
    values = {"config": config.model_dump(mode="json"), "settings": settings}
    _run_started(place, values | options.to_values())


def resume_as_rank(place: RankPlace, run: str, options: TrialOptions, runs: Path) -> None:
    """Resume a run as one of the ranks that torchrun has started; only rank 0 needs to see its directory."""
    url = run if "://" in run else None
    if place.rank == 0:
        directory = find_run(run if url is None else pulled(url, runs)[0], runs)
        if (asked := load_experiment(directory.config).training.ranks) != place.ranks:
            raise RanksMisconfigured(_different_count(asked, place))
        run = str(directory.path)
    _run_started(place, {"run": run, "url": url} | options.to_values())


def leave_signals_to_rank_0() -> None:
    """Ignore requests to stop: rank 0 gets them too, saves, and ends all ranks."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # A handler, since what is ignored would stay ignored in the processes that environments start.
        signal.signal(number, _ignore)


def _run_started(place: RankPlace, values: Mapping[str, Any]) -> None:
    began: list[str] = []
    if place.rank:
        leave_signals_to_rank_0()
    try:
        run_rank(place, lambda group: lead(group, values, began.append))
    except RankLost as error:
        if place.rank:
            # Rank 0 says what happened.
            raise typer.Exit(RANK_LOST) from None
        resume = f" Start the ranks again with the arguments: resume {began[0]}" if began else ""
        raise RankLost(f"{error}{resume}") from error


def _checked(config: ExperimentConfig, options: TrialOptions, local_ranks: int) -> ExperimentConfig:
    """The config as it fits this machine. What is wrong is refused before anything starts."""
    fitting = fit_to_machine(config, allow_fallback=options.allow_fallback)
    return check_combination(fitting, processes=local_ranks)


def _different_count(asked: int, place: RankPlace) -> str:
    return (
        f"training.ranks is {asked}, and {place.ranks} ranks were started (WORLD_SIZE); start {asked}, or change "
        f"training.ranks, which changes the bits of the run."
    )


def _ignore(number: int, frame: FrameType | None) -> None:
    """Ignore a signal."""
