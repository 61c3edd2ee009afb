"""One trial of a study: trained seed by seed in a process of its own, and pruned at evaluations."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState

from rl4sys.config import parse
from rl4sys.experiments import ExperimentConfig, Logger, MetricRecord, NotSaved, Run, RunBusy, load_experiment
from rl4sys.experiments.config import TrainingSection
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.journal import attach, frozen, open_study
from rl4sys.laboratory.trials.launcher import Report, TrialLaunch
from rl4sys.laboratory.trials.trial import TrialOptions, locked, result_in, run_in, train_run
from rl4sys.run_files import RETURN

TUNE = "rl4sys.laboratory.studies.trial:train"
"""The task that trains a trial of a study."""
CAUSE = "cause"
"""The attribute of an Optuna trial with the reason for its failure."""


class StoppedByAlert(RuntimeError):
    """An alert stopped a trial before its first evaluation."""


def study_launch(
    study: TuneConfig,
    number: int,
    key: str,
    configs: Sequence[ExperimentConfig],
    settings: str,
    options: TrialOptions,
) -> TrialLaunch:
    """What a launcher needs to train a trial of a study, with one config per seed."""
    values = {
        "study": study.model_dump(mode="json"),
        "number": number,
        "configs": [config.model_dump(mode="json") for config in configs],
        "allow_fallback": options.allow_fallback,
    }
    return TrialLaunch(
        key=key,
        task=TUNE,
        values=values,
        directory=study.place / key,
        title=f"trial {number}",
        settings=settings,
        steps=sum(config.training.total_timesteps for config in configs),
    )


def train(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Train a trial until it is finished or pruned; true once the study knows its outcome."""
    config = parse(TuneConfig, values["study"])
    study = open_study(config, config.place)
    number: int = values["number"]
    if frozen(study, number).state.is_finished():
        # An earlier process told the study, but died before it could report to the driver.
        return True
    try:
        return _train(study, config, values, report, stop)
    except (OSError, NotSaved, RunBusy):
        # The machine's fault and not the trial's: it can be resumed.
        raise
    except Exception as error:  # any other failure ends this trial, and the study continues
        attach(study, number).set_user_attr(CAUSE, f"{type(error).__name__}: {error}")
        study.tell(number, state=TrialState.FAIL)
        raise


def _train(
    study: optuna.Study, config: TuneConfig, values: Mapping[str, Any], report: Report, stop: Callable[[], bool]
) -> bool:
    number: int = values["number"]
    pruning = PruningLogger(study, number, report)

    def begin(run: Run) -> Sequence[Logger]:
        report({"step": pruning.steps_before + run.steps})
        return [pruning]

    experiments = [load_experiment(config) for config in values["configs"]]
    for experiment in experiments:
        pruning.begin(experiment.training)
        with locked(Path(experiment.experiment.directory), stop) as directory:
            result = result_in(directory)
            if result is None:
                if stop():
                    return False
                trained = train_run(
                    run_in(directory),
                    experiment,
                    begin,
                    lambda: stop() or pruning.is_pruned,
                    allow_fallback=values["allow_fallback"],
                )
                if trained.alert is not None:
                    return pruning.give_up(f"an alert stopped it: {trained.alert}")
                result = trained.result
        if pruning.is_pruned and not (result.finished and experiment is experiments[-1]):
            study.tell(number, state=TrialState.PRUNED)
            return True
        if not result.finished:
            return False
        pruning.conclude(result.evaluation if config.score == "last" else result.best)
    study.tell(number, pruning.score)
    return True


class PruningLogger:
    """A logger that reports evaluations to the study, and asks it whether to prune the trial."""

    def __init__(self, study: optuna.Study, number: int, report: Report) -> None:
        self._study, self._number, self._report = study, number, report
        self._trial = attach(study, number)
        self._scores: list[float] = []
        self._training = TrainingSection()
        self.steps_before = 0
        """Steps of the seeds that are finished."""
        self.is_pruned = False
        """Whether the study has decided that the trial is not worth more steps."""

    @property
    def score(self) -> float:
        """The mean over the seeds so far."""
        return statistics.fmean(self._scores)

    def begin(self, training: TrainingSection) -> None:
        """Start the next seed."""
        self._training = training

    def conclude(self, score: float | None) -> None:
        """Add the score of a finished seed."""
        if score is None:
            raise ValueError("The run ended without an evaluation, so it has no score.")
        self._scores.append(score)
        self.steps_before += self._training.total_timesteps

    def give_up(self, cause: str) -> bool:
        """Prune the trial because an alert stopped it; an error if there was no evaluation yet."""
        if not frozen(self._study, self._number).intermediate_values:
            raise StoppedByAlert(cause)
        self._trial.set_user_attr(CAUSE, cause)
        self._study.tell(self._number, state=TrialState.PRUNED)
        return True

    def log(self, record: MetricRecord) -> None:
        """Report a record; at an evaluation, ask the study whether to continue."""
        values = json.loads(record.to_json())
        self._report({"record": {**values, "step": self.steps_before + record.step}})
        evaluation = record.metrics.get(RETURN)
        if evaluation is None:
            return
        step = self.steps_before + self._due_step(record.step)
        # A resumed run repeats evaluations after its checkpoint, with the same outcome.
        if step not in frozen(self._study, self._number).intermediate_values:
            self._trial.report(statistics.fmean([*self._scores, evaluation]), step)
        self.is_pruned = self._trial.should_prune()

    def _due_step(self, step: int) -> int:
        """The step at which an evaluation was due, so that trials with rollouts of different lengths are comparable."""
        total, frequency = self._training.total_timesteps, self._training.eval_frequency
        return total if step >= total or frequency == 0 else step // frequency * frequency

    def close(self) -> None:
        """Nothing to close."""
