"""The summary of a study, from what Optuna has stored. Imports Optuna, and nothing that imports torch."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from rl4sys.atomic_files import replace_file

JOURNAL = "journal.log"
BEST = "best.yaml"
STUDY = "study"
"""The name of the study in its journal."""
CAUSE = "cause"
"""The attribute of an Optuna trial with the reason for its failure."""
TRIALS = "trials"
"""The attribute of an Optuna study with the number of trials that it should have."""
PARENT, FROM_STEP = "parent", "from_step"
"""The attributes of an Optuna trial that is a copy, in a population: of which trial, and at which step."""
FEWEST = 4
"""Trials with a score that are needed to estimate importances."""
_STATES = {"COMPLETE": "finished", "PRUNED": "given up", "FAIL": "failed", "RUNNING": "interrupted"}


@dataclass(frozen=True, slots=True)
class TunedTrial:
    """One trial of a study."""

    number: int
    status: str
    """`finished`, `given up`, `failed`, `interrupted` or `waiting`."""
    score: float | None
    """Its score; of a pruned trial, its last evaluation."""
    steps: int
    """The step of the last evaluation."""
    values: dict[str, Any]
    cause: str | None
    """Why it failed or was replaced, if it did or was."""
    parent: int | None = None
    """In a population: the trial that it is a copy of, if it is one."""
    from_step: int | None = None
    """The step at which it was copied."""


@dataclass(frozen=True, slots=True)
class TuneSummary:
    """The state of a study: its trials, the best one, and the importance of each setting."""

    name: str
    best: TunedTrial | None
    best_config: str | None
    """The file with the best config."""
    importances: dict[str, float]
    trials: tuple[TunedTrial, ...]

    def write(self, path: Path) -> None:
        """Write the summary as JSON."""
        replace_file(path, json.dumps(asdict(self), indent=1).encode())

    def descent(self, trial: TunedTrial) -> tuple[TunedTrial, ...]:
        """The trials that a trial descends from, the first one first, and itself."""
        line = [trial]
        while line[0].parent is not None:
            line.insert(0, self.trials[line[0].parent])
        return tuple(line)

    @property
    def unfinished(self) -> int:
        """Trials that can be resumed or started."""
        return sum(trial.status in ("interrupted", "waiting") for trial in self.trials)


def stored_study(place: Path) -> optuna.Study:
    """The study in a directory, to be read; its journal may be growing."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = JournalStorage(JournalFileBackend(str(place / JOURNAL)))
    return optuna.load_study(study_name=STUDY, storage=storage)


def summary_of(study: optuna.Study, name: str, place: Path) -> TuneSummary:
    """The summary of a study whose trials are in a directory."""
    trials = tuple(
        TunedTrial(
            number=trial.number,
            status=_STATES.get(trial.state.name, "waiting"),
            score=trial.value if trial.value is not None else _last(trial),
            steps=trial.last_step or 0,
            values=chosen_values(trial.params, trial.distributions),
            cause=trial.user_attrs.get(CAUSE),
            parent=trial.user_attrs.get(PARENT),
            from_step=trial.user_attrs.get(FROM_STEP),
        )
        for trial in study.get_trials(deepcopy=False)
    )
    best = best_of(study)
    return TuneSummary(
        name=name,
        best=None if best is None else trials[best.number],
        best_config=None if best is None else str(place / BEST),
        importances=importances(study),
        trials=trials,
    )


def chosen_values(params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """The values that Optuna chose, as the config expects them: choices are stored as JSON."""
    return {
        key: json.loads(value) if isinstance(distributions[key], CategoricalDistribution) else value
        for key, value in params.items()
    }


def best_of(study: optuna.Study) -> FrozenTrial | None:
    """The trial with the highest score, if any has one."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return max(complete, key=lambda trial: trial.value or 0.0, default=None)


def importances(study: optuna.Study) -> dict[str, float]:
    """The importance of each setting for the score, the largest first; they add up to 1."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(complete) < FEWEST or len({trial.value for trial in complete}) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    return optuna.importance.get_param_importances(study, evaluator=evaluator)


def _last(trial: FrozenTrial) -> float | None:
    return None if trial.last_step is None else trial.intermediate_values[trial.last_step]
