"""The Optuna study, stored in a journal file that several processes use at once."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from rl4sys.config import ConfigError
from rl4sys.file_lock import FileLock
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.study_summary import JOURNAL, STUDY
from rl4sys.laboratory.trials.ranges import Choice, IntUniform, LogIntUniform, LogUniform, Range, Uniform
from rl4sys.seeding import Seeds

_IDENTITY = "settings"


def open_study(config: TuneConfig, place: Path) -> optuna.Study:
    """Open the study in a directory, or create it; a study that was started with other settings is refused."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    place.mkdir(parents=True, exist_ok=True)
    journal = str(place / JOURNAL)
    study = optuna.create_study(
        storage=JournalStorage(JournalFileBackend(journal, lock_obj=_Lock(journal))),
        study_name=STUDY,
        direction="maximize",
        pruner=_pruner(config),
        load_if_exists=True,
    )
    identity = config.identity()
    begun_with = study.user_attrs.get(_IDENTITY)
    if begun_with is None:
        study.set_user_attr(_IDENTITY, identity)
    elif begun_with != identity:
        raise ConfigError(
            f"The study in {place} was started with another base, space, score, seeds or overrides (also those of the "
            f"command line). Undo the change to continue it, or give this one another name (--name)."
        )
    return study


def suggest(study: optuna.Study, config: TuneConfig) -> tuple[int, dict[str, Any]]:
    """Ask the study for a new trial: its number and values.

    The seed of the sampler depends on the number of the trial, so that a resumed study continues as it would have.
    """
    number = len(study.get_trials(deepcopy=False))
    seed = Seeds(config.seed).integer("tuning", number) & 0xFFFFFFFF
    with warnings.catch_warnings():
        # `constant_liar` is experimental in older versions; without it, parallel jobs would try the same values.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=config.startup_trials, constant_liar=True
        )
    ranges = config.ranges()
    trial = study.ask({key: distribution(range_) for key, range_ in ranges.items()})
    return trial.number, values_of(trial.params, ranges)


def attach(study: optuna.Study, number: int) -> optuna.Trial:
    """A trial that another process created, to report to."""
    return optuna.Trial(study, frozen(study, number)._trial_id)


def frozen(study: optuna.Study, number: int) -> optuna.trial.FrozenTrial:
    """The current state of a trial."""
    return study.get_trials(deepcopy=False)[number]


def distribution(range_: Range) -> BaseDistribution:
    """A range as an Optuna distribution."""
    match range_:
        case Uniform(low, high):
            return FloatDistribution(low, high)
        case LogUniform(low, high):
            return FloatDistribution(low, high, log=True)
        case IntUniform(low, high):
            return IntDistribution(low, high)
        case LogIntUniform(low, high):
            return IntDistribution(low, high, log=True)
        case Choice(values):
            # As text: a journal cannot store lists as choices.
            return CategoricalDistribution([json.dumps(value) for value in values])


def values_of(params: Mapping[str, Any], ranges: Mapping[str, Range]) -> dict[str, Any]:
    """The values that Optuna chose, as the config expects them."""
    return {
        key: json.loads(params[key]) if isinstance(range_, Choice) else params[key]
        for key, range_ in ranges.items()
        if key in params
    }


def params_of(values: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Values as Optuna stores them: the inverse of `values_of`."""
    return {
        key: json.dumps(value) if isinstance(distributions[key], CategoricalDistribution) else value
        for key, value in values.items()
    }


def _pruner(config: TuneConfig) -> optuna.pruners.BasePruner:
    section = config.pruner
    if section.name == "none":
        return optuna.pruners.NopPruner()
    if section.name == "median":
        return optuna.pruners.MedianPruner(
            n_startup_trials=section.startup_trials, n_warmup_steps=section.min_steps, n_min_trials=1
        )
    training = config.example().training
    if section.name == "asha":
        return optuna.pruners.SuccessiveHalvingPruner(
            min_resource=max(1, section.min_steps or training.eval_frequency),
            reduction_factor=section.reduction_factor,
        )
    seeds = len(config.seeds or (0,))
    return optuna.pruners.HyperbandPruner(
        min_resource=max(1, section.min_steps or training.eval_frequency),
        max_resource=training.total_timesteps * seeds,
        reduction_factor=section.reduction_factor,
    )


class _Lock(JournalFileOpenLock):
    """Lets one process append at a time. It is released when its holder ends, even by kill -9."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path = Path(path)
        self._held: FileLock | None = None

    def acquire(self) -> bool:
        """Wait for the journal, and remove an incomplete line that a killed process may have left at its end."""
        self._held = FileLock.acquire(self._path, create=0o666)
        journal = self._held.descriptor
        size = os.fstat(journal).st_size
        if size and os.pread(journal, 1, size - 1) != b"\n":
            whole = os.pread(journal, size, 0).rfind(b"\n") + 1
            os.ftruncate(journal, whole)
        return True

    def release(self) -> None:
        """Release the journal."""
        if self._held is not None:
            self._held.release()
            self._held = None
