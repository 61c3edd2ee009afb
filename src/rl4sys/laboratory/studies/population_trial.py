"""One run of a population, trained until the next comparison in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rl4sys.experiments import Logger, Run
from rl4sys.laboratory.studies.trial import FAULTS_OF_THE_MACHINE
from rl4sys.laboratory.trials.launcher import Report, TrialLaunch
from rl4sys.laboratory.trials.trial import Reporter, Trial, TrialOptions, train_trial

TRAIN_MEMBER = "rl4sys.laboratory.studies.population_trial:train"
"""The task that trains a run of a population."""


def member_launch(trial: Trial, until: int, title: str, settings: str, options: TrialOptions) -> TrialLaunch:
    """What a launcher needs to train a run until a step."""
    return TrialLaunch(
        key=trial.key,
        task=TRAIN_MEMBER,
        values={"part": trial.launch(options).values, "until": until},
        directory=trial.directory.parent,
        title=title,
        settings=settings,
        steps=until,
    )


def train(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Train until the step of the next comparison; true when that is reached.

    Reported are the records, the score with which it was reached, and a failure that is the trial's own.
    """
    try:
        return _train(values, report, stop)
    except FAULTS_OF_THE_MACHINE:
        raise
    except Exception as error:  # whatever the trial's own code raises
        report({"trial_failed": f"{type(error).__name__}: {error}"})
        raise


def _train(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    until, runs = values["until"], list[Run]()

    def begin(run: Run) -> Sequence[Logger]:
        runs.append(run)
        report({"step": run.steps})
        return [Reporter(report)]

    def is_over() -> bool:
        return stop() or any(run.steps >= until for run in runs)

    trained = train_trial(values["part"], begin, is_over)
    if trained is None:
        return False
    result = trained.result
    if trained.alert is not None:
        report({"given_up": f"an alert stopped it: {trained.alert}"})
        return True
    if not result.finished and result.steps < until:
        return False
    if result.evaluation is None:
        raise ValueError("The run has no evaluation yet, so it cannot be compared.")
    report({"reached": until, "score": result.evaluation, "best": result.best, "finished": result.finished})
    return True
