"""The results of a study: its summary and its plots."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState

from rl4sys.atomic_files import replace_file
from rl4sys.experiments import NothingToPlot
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.journal import values_of
from rl4sys.laboratory.studies.study import BEST, best_of
from rl4sys.laboratory.studies.study_record import CAUSE
from rl4sys.laboratory.trials.names import short_names

_FEWEST = 4
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


def importances(study: optuna.Study) -> dict[str, float]:
    """The importance of each setting for the score, the largest first; they add up to 1."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(complete) < _FEWEST or len({trial.value for trial in complete}) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    return optuna.importance.get_param_importances(study, evaluator=evaluator)


def plot_history(study: optuna.Study, title: str, output: Path) -> Path:
    """Plot the return of every trial, and the best so far, into a PNG."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    trials = study.get_trials(deepcopy=False)
    complete = [(trial.number, trial.value) for trial in trials if trial.state is TrialState.COMPLETE]
    if not complete:
        raise NothingToPlot("There is nothing to plot yet: no trial of the study is finished.")
    pruned = [
        (trial.number, trial.intermediate_values[trial.last_step])
        for trial in trials
        if trial.state is TrialState.PRUNED and trial.last_step is not None
    ]
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    numbers, values = zip(*complete, strict=True)
    if pruned:
        axes.plot(*zip(*pruned, strict=True), "x", color="0.6", markersize=5, label=f"{len(pruned)} given up early")
    axes.plot(numbers, values, "o", color="C0", alpha=0.6, markersize=5, label=f"{len(complete)} finished")
    best = [*accumulate(values, max), max(values)]
    axes.step([*numbers, trials[-1].number], best, where="post", color="C1", linewidth=2, label="best so far")
    axes.set_title(title)
    axes.set_xlabel("trial")
    axes.set_ylabel("return")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(framealpha=0.85)
    figure.savefig(output, dpi=150)
    return output


def plot_importances(study: optuna.Study, title: str, output: Path) -> Path:
    """Plot the importance of each setting into a PNG."""
    from matplotlib.figure import Figure

    found = importances(study)
    if not found:
        raise NothingToPlot(f"Importances need {_FEWEST} finished trials with different returns.")
    names = short_names(list(found))
    figure = Figure(figsize=(8, 1.4 + 0.4 * len(found)), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh([names[key] for key in found], list(found.values()), color="C0", height=0.65)
    axes.bar_label(bars, [f"{share:.0%}" for share in found.values()], padding=4)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * max(found.values()))
    axes.set_title(f"{title}: importance of settings")
    axes.set_xlabel("importance")
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(output, dpi=150)
    return output
