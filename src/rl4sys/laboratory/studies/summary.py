"""The summary of a study, for the terminal and for `--json`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import optuna

from rl4sys.atomic_files import replace_file
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.journal import values_of
from rl4sys.laboratory.studies.plots import importances
from rl4sys.laboratory.studies.study import BEST, best_of
from rl4sys.laboratory.studies.trial import CAUSE

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
    """Why it failed, if it did."""


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

    @property
    def unfinished(self) -> int:
        """Trials that can be resumed or started."""
        return sum(trial.status in ("interrupted", "waiting") for trial in self.trials)


def summarize_study(config: TuneConfig, study: optuna.Study) -> TuneSummary:
    """Summarize a study."""
    ranges = config.ranges()
    trials = tuple(
        TunedTrial(
            number=trial.number,
            status=_STATES.get(trial.state.name, "waiting"),
            score=trial.value if trial.value is not None else _last(trial),
            steps=trial.last_step or 0,
            values=values_of(trial.params, ranges),
            cause=trial.user_attrs.get(CAUSE),
        )
        for trial in study.get_trials(deepcopy=False)
    )
    best = best_of(study)
    return TuneSummary(
        name=config.name or "",
        best=None if best is None else trials[best.number],
        best_config=None if best is None else str(config.place / BEST),
        importances=importances(study),
        trials=trials,
    )


def _last(trial: optuna.trial.FrozenTrial) -> float | None:
    return None if trial.last_step is None else trial.intermediate_values[trial.last_step]
