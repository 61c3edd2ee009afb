"""Runs a study: Optuna suggests values near those that did well, and prunes trials that do badly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from rl4sys.atomic_files import replace_file
from rl4sys.config import ConfigError
from rl4sys.config.plugin_copies import plugin_texts
from rl4sys.experiments import ExperimentConfig, RunDirectory
from rl4sys.laboratory.studies.best_config import BestConfig
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.journal import attach, frozen, open_study, suggest, values_of
from rl4sys.laboratory.studies.study_record import StudyRecord
from rl4sys.laboratory.studies.study_summary import CAUSE, TRIALS
from rl4sys.laboratory.studies.trial import study_launch, trial_key, trial_number
from rl4sys.laboratory.trials import driver
from rl4sys.laboratory.trials.config import placed
from rl4sys.laboratory.trials.launcher import Launcher, Outcome, TrialLaunch
from rl4sys.laboratory.trials.names import label
from rl4sys.laboratory.trials.plugin_check import changed_plugins
from rl4sys.laboratory.trials.trial import Trial, TrialOptions, locked
from rl4sys.laboratory.trials.view import TrialView
from rl4sys.run_files import MANIFEST, PRUNED, read_result

_FAILURES_TO_END = 3
"""A study ends when so many trials failed and none did anything else: more would fail for the same reason."""


class StudyFailed(RuntimeError):
    """Every trial of a study failed."""


def run_study(
    config: TuneConfig,
    launcher: Launcher,
    view: Callable[[int], TrialView],
    stop: Callable[[], bool],
    options: TrialOptions,
) -> optuna.Study:
    """Continue a study until it has all its trials. `view` is called with the number of trials that have ended."""
    with locked(config.place, stop, timeout=0):
        study = open_study(config, config.place)
        if study.user_attrs.get(TRIALS) != config.trials:
            study.set_user_attr(TRIALS, config.trials)
        states = [trial.state for trial in study.get_trials(deepcopy=False)]
        launches = _Launches(config, study, options, failed_before=states.count(TrialState.FAIL))
        best = BestConfig(config, study)
        ended = sum(state.is_finished() for state in states)
        record = StudyRecord(study, len(config.seeds or (0,)), lambda number: launcher.stop(trial_key(number)))

        def after_end(state: driver.TrialState) -> None:
            record.end(trial_number(state.key), state.outcome or Outcome.STOPPED)
            best.write()
            if frozen(study, trial_number(state.key)).state is TrialState.PRUNED:
                mark_pruned(config.place / state.key)

        trials = driver.TrialDriver(
            view(ended),
            describe=lambda state: _describe(state, frozen(study, trial_number(state.key))),
            after_end=after_end,
            after_start=lambda state: record.begin(trial_number(state.key)),
            on_report=lambda state, values: record.note(trial_number(state.key), values),
        )
        trials.run(launcher, launches.all(), stop)
        best.write()
        if launches.all_failed():
            cause = str(study.get_trials(deepcopy=False)[-1].user_attrs.get(CAUSE)).rstrip(".")
            raise StudyFailed(
                f"All trials of {config.place} failed, the last one with: {cause}. Repair the cause and run the same "
                f"command again; the output of the trials is in {config.place}/trial-*/output.txt."
            )
        return study


def require_comparable_plugins(config: TuneConfig) -> None:
    """Refuse to continue a study with other plug-ins than its trials had, finished ones too: scores are compared."""
    texts = plugin_texts(config.example().plugins)
    for manifest in sorted(config.place.glob(f"trial-*/*/*/{MANIFEST}")) if texts else ():
        for path in changed_plugins(RunDirectory(manifest.parent), texts):
            raise ConfigError(
                f"The plug-in {path} has changed since {manifest.parents[2].name} of {config.place} began, and scores "
                f"of different code cannot be compared. Restore it, or search again under another --name"
            )


@dataclass(frozen=True, slots=True)
class _Launches:
    """The trials to run: first those that an earlier call left unfinished, then what the study suggests."""

    config: TuneConfig
    study: optuna.Study
    options: TrialOptions
    failed_before: int

    def all_failed(self) -> bool:
        """Whether several trials of this call failed, and no trial of the study has ended in any other way."""
        states = [trial.state for trial in self.study.get_trials(deepcopy=False)]
        failed = states.count(TrialState.FAIL)
        is_enough = failed - self.failed_before >= _FAILURES_TO_END
        return is_enough and failed == sum(state.is_finished() for state in states)

    def all(self) -> Iterator[TrialLaunch | None]:
        """One launch per free slot; None while the next one depends on how the running trials end."""
        ranges = self.config.ranges()
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if trial.params.keys() == ranges.keys():
                yield self._launch(trial.number, values_of(trial.params, ranges))
            else:
                self._fail(trial.number, "the study was killed while it chose the values")
        while len(self.study.get_trials(deepcopy=False)) < self.config.trials:
            if self.all_failed():
                if not self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                    return
                # One of the running trials may still succeed.
                yield None
                continue
            number, values = suggest(self.study, self.config)
            try:
                launch = self._launch(number, values)
            except ConfigError as error:
                # Values that are invalid together need no process to fail.
                self._fail(number, str(error))
                continue
            yield launch

    def _fail(self, number: int, cause: str) -> None:
        attach(self.study, number).set_user_attr(CAUSE, cause)
        self.study.tell(number, state=TrialState.FAIL)

    def _launch(self, number: int, values: dict[str, Any]) -> TrialLaunch:
        key = trial_key(number)
        directory = self.config.place / key
        configs = [self._experiment(values, seed, directory) for seed in self.config.seeds or (None,)]
        trials = [Trial(key, config, group=self.config.place.name) for config in configs]
        return study_launch(self.config, number, key, trials, label(values), self.options)

    def _experiment(self, values: dict[str, Any], seed: int | None, directory: Path) -> ExperimentConfig:
        given: dict[str, Any] = {} if seed is None else {"experiment.seed": seed}
        named = {"experiment.name": f"{self.config.name}-{directory.name}"}
        config = self.config.experiment({**values, **named, **given})
        return placed(config, directory / f"seed{config.experiment.seed}")


def mark_pruned(trial: Path) -> None:
    """Say in the unfinished runs of a trial that its study has pruned them: they are not to be resumed."""
    for manifest in trial.glob(f"*/*/{MANIFEST}"):
        if not read_result(manifest.parent).get("finished"):
            replace_file(manifest.with_name(PRUNED), b"Others did better; rl4sys tune has pruned this run.\n")


def _describe(state: driver.TrialState, trial: FrozenTrial) -> driver.EndLine:
    if state.outcome is Outcome.STOPPED and not trial.state.is_finished():
        return driver.EndLine("stopped, with a checkpoint", is_over=False)
    if state.outcome is Outcome.FAILED:
        return driver.EndLine(f"failed: {state.cause}", failed=True, is_over=trial.state.is_finished())
    if trial.state is TrialState.PRUNED and trial.last_step is not None:
        cause = f": {trial.user_attrs[CAUSE]}" if CAUSE in trial.user_attrs else ""
        reached = trial.intermediate_values[trial.last_step]
        return driver.EndLine(f"given up at step {trial.last_step:,}, return {reached:.1f}{cause}")
    has_score = trial.value is not None
    return driver.EndLine(f"finished, return {trial.value:.1f}" if has_score else trial.state.name.lower())
