"""One trial of a study in a process of its own: trained seed by seed, judged at every evaluation."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState

from rl4sys.config import parse
from rl4sys.experiments import ExperimentConfig, MetricRecord, NotSaved, RunBusy, load_experiment
from rl4sys.experiments.config import TrainingSection
from rl4sys.laboratory.run_index.index_logger import follow
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.journal import attach, frozen, open_study
from rl4sys.laboratory.trials.launcher import Report
from rl4sys.laboratory.trials.trial import StoppedByAlert, held, open_run, result_in

TUNE = "rl4sys.laboratory.studies.trial:train"
"""The task that trains a trial of a study."""
CAUSE = "cause"
"""Why a trial failed, in its attributes."""


def order_values(
    study: TuneConfig, number: int, configs: list[ExperimentConfig], *, allow_fallback: bool
) -> dict[str, Any]:
    """What the task `TUNE` is given: a trial's number, and its config for each seed."""
    return {
        "study": study.model_dump(mode="json"),
        "number": number,
        "configs": [config.model_dump(mode="json") for config in configs],
        "allow_fallback": allow_fallback,
    }


def train(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Train a trial to its end, or until it is given up; true when the study has been told."""
    config = parse(TuneConfig, values["study"])
    study = open_study(config, config.place)
    number: int = values["number"]
    if frozen(study, number).state.is_finished():
        # Whoever began it could tell the study, and not whoever asked.
        return True
    try:
        return _train(study, config, values, report, stop)
    except (OSError, NotSaved, RunBusy):
        # The machine's fault and not the trial's: it can go on later.
        raise
    except Exception as error:  # whatever it is, this trial is lost, and the study goes on
        attach(study, number).set_user_attr(CAUSE, f"{type(error).__name__}: {error}")
        study.tell(number, state=TrialState.FAIL)
        raise


def _train(
    study: optuna.Study, config: TuneConfig, values: Mapping[str, Any], report: Report, stop: Callable[[], bool]
) -> bool:
    number: int = values["number"]
    judge = Judge(study, number, report)
    experiments = [load_experiment(config) for config in values["configs"]]
    for experiment in experiments:
        judge.begin(experiment.training)
        with held(Path(experiment.experiment.directory), stop) as place:
            result = result_in(place)
            if result is None:
                if stop():
                    return False
                run = open_run(place, experiment, allow_fallback=values["allow_fallback"])
                report({"step": judge.steps_before + run.steps})
                with follow(run.directory.path) as follower:
                    result = run.train([judge, follower], lambda: stop() or judge.has_given_up)
                if run.stopped is not None and not result.finished:
                    return judge.give_up(f"an alert stopped it: {run.stopped}")
        if judge.has_given_up and not (result.finished and experiment is experiments[-1]):
            study.tell(number, state=TrialState.PRUNED)
            return True
        if not result.finished:
            return False
        judge.conclude(result.evaluation if config.score == "last" else result.best)
    study.tell(number, judge.score)
    return True


class Judge:
    """A logger that tells the study how a trial does, and asks it whether to go on."""

    def __init__(self, study: optuna.Study, number: int, report: Report) -> None:
        self._study, self._number, self._report = study, number, report
        self._trial = attach(study, number)
        self._scores: list[float] = []
        self._training = TrainingSection()
        self.steps_before = 0
        """Steps of the seeds that are finished."""
        self.has_given_up = False
        """Whether the study said that the trial is not worth more steps."""

    @property
    def score(self) -> float:
        """The mean over the seeds so far."""
        return statistics.fmean(self._scores)

    def begin(self, training: TrainingSection) -> None:
        """What comes is about the next seed."""
        self._training = training

    def conclude(self, score: float | None) -> None:
        """A seed is finished."""
        if score is None:
            raise ValueError("The run ended without an evaluation to judge it by.")
        self._scores.append(score)
        self.steps_before += self._training.total_timesteps

    def give_up(self, cause: str) -> bool:
        """An alert has ended the trial early; what it reached so far counts, and there must be something."""
        if not frozen(self._study, self._number).intermediate_values:
            raise StoppedByAlert(cause)
        self._trial.set_user_attr(CAUSE, cause)
        self._study.tell(self._number, state=TrialState.PRUNED)
        return True

    def log(self, record: MetricRecord) -> None:
        """Hand over a record; at an evaluation, ask whether to go on."""
        facts = json.loads(record.to_json())
        self._report({"record": {**facts, "step": self.steps_before + record.step}})
        evaluation = record.metrics.get("evaluation/return")
        if evaluation is None:
            return
        step = self.steps_before + self._due_step(record.step)
        # A resumed run evaluates again what it had told after its checkpoint, with the same outcome.
        if step not in frozen(self._study, self._number).intermediate_values:
            self._trial.report(statistics.fmean([*self._scores, evaluation]), step)
        self.has_given_up = self._trial.should_prune()

    def _due_step(self, step: int) -> int:
        """The step at which an evaluation was due: trials with turns of different lengths are compared there."""
        total, frequency = self._training.total_timesteps, self._training.eval_frequency
        return total if step >= total or frequency == 0 else step // frequency * frequency

    def close(self) -> None:
        """Nothing is held."""
