"""One trial of a study: trained seed by seed in a process of its own, which reports to the process of the study."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rl4sys.experiments import Logger, MetricRecord, NotSaved, Run, RunBusy
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.trials.launcher import Report, TrialLaunch
from rl4sys.laboratory.trials.trial import Trial, TrialOptions, train_trial
from rl4sys.run_files import RETURN
from rl4sys.storage import StorageUnavailable, Superseded

TUNE = "rl4sys.laboratory.studies.trial:train"
"""The task that trains a trial of a study."""
FAULTS_OF_THE_MACHINE = (OSError, NotSaved, RunBusy, StorageUnavailable, Superseded)
"""Failures after which a trial can be resumed; any other ends it, and the study continues."""


def trial_key(number: int) -> str:
    """The name of a trial, and of its directory in that of the study."""
    return f"trial-{number:04d}"


def trial_number(key: str) -> int:
    """The inverse of `trial_key`."""
    return int(key.removeprefix("trial-"))


def study_launch(
    study: TuneConfig, number: int, key: str, trials: Sequence[Trial], settings: str, options: TrialOptions
) -> TrialLaunch:
    """What a launcher needs to train a trial of a study, which is one experiment with several seeds."""
    return TrialLaunch(
        key=key,
        task=TUNE,
        values={"parts": [trial.launch(options).values for trial in trials], "score": study.score},
        directory=study.place / key,
        title=f"trial {number}",
        settings=settings,
        steps=sum(trial.config.training.total_timesteps for trial in trials),
    )


def train(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Train all seeds of a trial; true when they are finished, or when an alert has ended the trial.

    Reported are the records, each evaluation with the step at which it was due, the score of each seed, and a failure
    that is the trial's own.
    """
    try:
        return _train(values, report, stop)
    except FAULTS_OF_THE_MACHINE:
        raise
    except Exception as error:  # whatever the trial's own code raises
        report({"trial_failed": f"{type(error).__name__}: {error}"})
        raise


def _train(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    done = 0
    for part in values["parts"]:
        training = part["config"]["training"]
        reporter = SeedReporter(report, done, training["total_timesteps"], training["eval_frequency"])

        def begin(run: Run, reporter: SeedReporter = reporter) -> Sequence[Logger]:
            report({"step": reporter.done + run.steps})
            return [reporter]

        trained = train_trial(part, begin, stop)
        if trained is not None and trained.alert is not None:
            report({"given_up": f"an alert stopped it: {trained.alert}"})
            return True
        if trained is None or not trained.result.finished:
            return False
        result = trained.result
        score = result.evaluation if values["score"] == "last" else result.best
        if score is None:
            raise ValueError("The run ended without an evaluation, so it has no score.")
        report({"score": score})
        done += training["total_timesteps"]
    return True


class SeedReporter:
    """A logger that reports the records of one seed, counted from the first step of the first seed."""

    def __init__(self, report: Report, done: int, total: int, frequency: int) -> None:
        self.done = done
        """Steps of the seeds before."""
        self._report, self._total, self._frequency = report, total, frequency

    def log(self, record: MetricRecord) -> None:
        """Report a record, and an evaluation with the step at which it was due."""
        values = json.loads(record.to_json())
        self._report({"record": {**values, "step": self.done + record.step}})
        evaluation = record.metrics.get(RETURN)
        if evaluation is not None:
            self._report({"evaluation": evaluation, "due": self.done + self._due_step(record.step)})

    def _due_step(self, step: int) -> int:
        """The step at which an evaluation was due, so that trials with rollouts of different lengths are comparable."""
        if step >= self._total or self._frequency == 0:
            return self._total
        return step // self._frequency * self._frequency

    def close(self) -> None:
        """Nothing to close."""
