"""The journal of a population: its trials, their scores at each comparison, and what was decided there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.journal import attach, distribution, frozen, params_of
from rl4sys.laboratory.studies.population import Replacement
from rl4sys.laboratory.studies.study_summary import CAUSE, FROM_STEP, PARENT
from rl4sys.laboratory.trials.launcher import Outcome

_DECISION = "comparison-{:04d}"
"""The attribute of the study with what was decided at a comparison."""
SEED = "seed"


class PopulationRecord:
    """Reads and writes the journal. Each entry is one line of it, so a kill leaves an entry whole or not there."""

    def __init__(self, config: TuneConfig, study: optuna.Study) -> None:
        self._study, self._score = study, config.score
        self._distributions = {key: distribution(range_) for key, range_ in config.ranges().items()}
        self._failed: dict[int, str] = {}

    def add(self, values: Mapping[str, Any], seed: int, parent: int | None = None, step: int | None = None) -> None:
        """Add a trial; its number is the next one."""
        attributes = {SEED: seed} | ({} if parent is None else {PARENT: parent, FROM_STEP: step})
        self._study.add_trial(
            create_trial(
                state=TrialState.RUNNING,
                params=params_of(values, self._distributions),
                distributions=self._distributions,
                user_attrs=attributes,
            )
        )

    def trial(self, number: int) -> FrozenTrial:
        """The current state of a trial."""
        return frozen(self._study, number)

    @property
    def count(self) -> int:
        """Trials so far."""
        return len(self._study.get_trials(deepcopy=False))

    def seed(self, number: int) -> int:
        """The seed of its run: a copy has that of the run it was copied from."""
        return int(self.trial(number).user_attrs[SEED])

    def score(self, number: int, step: int) -> float | None:
        """The score with which a trial reached a comparison; that of its end if it was solved before."""
        trial = self.trial(number)
        if trial.state is TrialState.COMPLETE:
            return trial.intermediate_values.get(step, trial.value)
        return trial.intermediate_values.get(step)

    def is_settled(self, number: int, step: int) -> bool:
        """Whether a trial has reached a comparison, or never will."""
        return self.trial(number).state.is_finished() or step in self.trial(number).intermediate_values

    def note(self, number: int, values: Mapping[str, Any]) -> None:
        """Take note of a report."""
        match values:
            case {"reached": step, "score": score, "best": best, "finished": finished}:
                attach(self._study, number).report(score, step)
                if finished:
                    self._study.tell(number, best if self._score == "best" else score)
            case {"given_up": cause} | {"trial_failed": cause}:
                self._failed[number] = cause

    def end(self, number: int, outcome: Outcome) -> None:
        """The process of a trial has ended; one that was stopped or killed can be resumed."""
        if number in self._failed and not self.trial(number).state.is_finished():
            attach(self._study, number).set_user_attr(CAUSE, self._failed[number])
            self._study.tell(number, state=TrialState.FAIL)

    def decision(self, comparison: int) -> Sequence[Replacement] | None:
        """What was decided at a comparison, if it was."""
        found = self._study.user_attrs.get(_DECISION.format(comparison))
        return None if found is None else [Replacement(**each) for each in found]

    def decide(self, comparison: int, replacements: Sequence[Replacement]) -> None:
        """Write down what was decided, before any of it is done."""
        self._study.set_user_attr(_DECISION.format(comparison), [each.to_values() for each in replacements])

    def replace(self, number: int, cause: str) -> None:
        """A trial ends because a copy of a better one takes its place."""
        if not self.trial(number).state.is_finished():
            attach(self._study, number).set_user_attr(CAUSE, cause)
            self._study.tell(number, state=TrialState.PRUNED)
