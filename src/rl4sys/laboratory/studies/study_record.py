"""What trials report, written to the study by the one process that drives it, which also decides what is pruned."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

import optuna
from optuna.trial import TrialState

from rl4sys.laboratory.studies.journal import attach, frozen
from rl4sys.laboratory.studies.study_summary import CAUSE
from rl4sys.laboratory.trials.launcher import Outcome


class StudyRecord:
    """Tells a study what its trials report and how they end, and asks for those that it prunes to be stopped."""

    def __init__(self, study: optuna.Study, seeds: int, stop_trial: Callable[[int], None]) -> None:
        self._study, self._seeds, self._stop_trial = study, seeds, stop_trial
        self._scores: dict[int, list[float]] = {}
        self._pruned: set[int] = set()
        self._given_up: dict[int, str] = {}
        self._failed: dict[int, str] = {}

    def begin(self, number: int) -> None:
        """A trial was started, for the first time or again: its finished seeds report their scores once more."""
        self._scores[number] = []

    def note(self, number: int, values: Mapping[str, Any]) -> None:
        """Take note of a report."""
        match values:
            case {"evaluation": evaluation, "due": step}:
                self._evaluate(number, evaluation, step)
            case {"score": score}:
                self._scores[number].append(score)
            case {"given_up": cause}:
                self._given_up[number] = cause
            case {"trial_failed": cause}:
                self._failed[number] = cause

    def end(self, number: int, outcome: Outcome) -> None:
        """A trial has ended; one that was stopped or killed can be resumed, so the study does not hear of it."""
        if frozen(self._study, number).state.is_finished():
            return
        scores = self._scores[number]
        if number in self._failed:
            self._tell(number, TrialState.FAIL, self._failed[number])
        elif number in self._given_up:
            has_value = bool(frozen(self._study, number).intermediate_values)
            self._tell(number, TrialState.PRUNED if has_value else TrialState.FAIL, self._given_up[number])
        elif len(scores) == self._seeds:
            self._study.tell(number, statistics.fmean(scores))
        elif number in self._pruned:
            self._study.tell(number, state=TrialState.PRUNED)
        elif outcome is Outcome.FINISHED:
            raise RuntimeError(f"Trial {number} has ended after {len(scores)} of {self._seeds} seeds.")

    def _evaluate(self, number: int, evaluation: float, step: int) -> None:
        if number in self._pruned:
            return
        trial = attach(self._study, number)
        # A resumed run repeats evaluations after its checkpoint, with the same outcome.
        if step not in frozen(self._study, number).intermediate_values:
            trial.report(statistics.fmean([*self._scores[number], evaluation]), step)
        if trial.should_prune():
            self._pruned.add(number)
            self._stop_trial(number)

    def _tell(self, number: int, state: TrialState, cause: str) -> None:
        attach(self._study, number).set_user_attr(CAUSE, cause)
        self._study.tell(number, state=state)
