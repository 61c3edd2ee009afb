"""Runs a population: all train until a comparison, then the worst are replaced by changed copies of the best.

Comparisons wait for every run, so what is decided depends neither on the number of jobs nor on how fast runs are. This
process alone decides and copies, after it has written down what: after a kill, the rest of it is done first.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import optuna
from optuna.trial import TrialState

from rl4sys.config import ConfigError, flat
from rl4sys.experiments import ExperimentConfig
from rl4sys.experiments.run_copy import copy_run
from rl4sys.experiments.run_directory import directory_name
from rl4sys.laboratory.studies.best_config import BestConfig
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.journal import open_study, values_of
from rl4sys.laboratory.studies.population import Replacement, explore, initial_values, replace_worst
from rl4sys.laboratory.studies.population_record import PopulationRecord
from rl4sys.laboratory.studies.population_trial import member_launch
from rl4sys.laboratory.studies.study import StudyFailed, mark_pruned
from rl4sys.laboratory.studies.study_summary import CAUSE
from rl4sys.laboratory.studies.trial import trial_key, trial_number
from rl4sys.laboratory.trials import driver
from rl4sys.laboratory.trials.config import placed
from rl4sys.laboratory.trials.launcher import Launcher, Outcome, TrialLaunch
from rl4sys.laboratory.trials.names import label
from rl4sys.laboratory.trials.trial import Trial, TrialOptions, locked, run_in
from rl4sys.laboratory.trials.view import TrialView
from rl4sys.seeding import Seeds


def run_population(
    config: TuneConfig,
    launcher: Launcher,
    view: Callable[[int], TrialView],
    stop: Callable[[], bool],
    options: TrialOptions,
) -> optuna.Study:
    """Continue a population until all its runs are trained. `view` is called with what was trained before."""
    with locked(config.place, stop, timeout=0):
        study = open_study(config, config.place)
        population = _Population(config, study, options)
        best = BestConfig(config, study)
        shown = view(population.begin())

        def after_end(state: driver.TrialState) -> None:
            population.end(trial_number(state.key), state.outcome or Outcome.STOPPED)
            best.write()

        trials = driver.TrialDriver(
            shown,
            describe=population.describe,
            after_end=after_end,
            on_report=lambda state, values: population.record.note(trial_number(state.key), values),
        )
        trials.run(launcher, population.launches(shown.say), stop)
        best.write()
        return study


class _Population:
    """The members of a population, who are trials of a study, from one comparison to the next."""

    def __init__(self, config: TuneConfig, study: optuna.Study, options: TrialOptions) -> None:
        if config.population is None:
            raise ConfigError("The study has no population")
        self._config, self._section, self._options = config, config.population, options
        self.record = PopulationRecord(config, study)
        self._ranges, self._boundaries = config.ranges(), config.boundaries()
        self._seeds = Seeds(config.seed)
        self._ended: set[int] = set()

    def begin(self) -> int:
        """Add the first members, unless they are there; returns how many trainings between comparisons are done."""
        first_seed = self._config.example().experiment.seed
        for member in range(self.record.count, self._section.size):
            values = initial_values(self._ranges, self._seeds, member, self._config.experiment)
            self.record.add(values, first_seed + member)
        done, members = 0, list(range(self._section.size))
        for comparison, step in enumerate(self._boundaries):
            done += sum(self.record.is_settled(number, step) for number in members)
            decision = self.record.decision(comparison)
            if decision is None:
                break
            members = _after(members, decision)
        return done

    def launches(self, say: Callable[[str], None]) -> Iterator[TrialLaunch | None]:
        """What has to be trained, comparison by comparison; None while the next one waits for trials that run."""
        members = list(range(self._section.size))
        for comparison, step in enumerate(self._boundaries):
            decision = self.record.decision(comparison)
            if decision is None:
                waiting = [number for number in members if not self.record.is_settled(number, step)]
                self._ended.clear()
                for number in waiting:
                    yield self._launch(number, comparison)
                while not self._ended.issuperset(waiting):
                    yield None
                if not all(self.record.is_settled(number, step) for number in members):
                    # Stopped, or killed: the next call continues them.
                    return
                if step == self._boundaries[-1]:
                    return
                decision = self._decide(comparison, members, say)
            for replacement in decision:
                self._copy(replacement, step)
            members = _after(members, decision)

    def end(self, number: int, outcome: Outcome) -> None:
        """The process of a trial has ended."""
        self.record.end(number, outcome)
        self._ended.add(number)

    def describe(self, state: driver.TrialState) -> driver.EndLine:
        """How the process of a trial ended."""
        trial = self.record.trial(trial_number(state.key))
        if trial.state is TrialState.FAIL:
            return driver.EndLine(f"failed: {trial.user_attrs[CAUSE]}", failed=True)
        if state.outcome is Outcome.FINISHED:
            reached = trial.intermediate_values[trial.last_step or 0]
            return driver.EndLine(f"return {reached:.1f} at step {trial.last_step:,}")
        if state.outcome is Outcome.FAILED:
            return driver.EndLine(f"failed: {state.cause}", failed=True, is_over=False)
        return driver.EndLine("stopped, with a checkpoint", is_over=False)

    def _decide(self, comparison: int, members: Sequence[int], say: Callable[[str], None]) -> Sequence[Replacement]:
        step = self._boundaries[comparison]
        scores = {
            number: None if self.record.trial(number).state is TrialState.FAIL else self.record.score(number, step)
            for number in members
        }
        if all(score is None for score in scores.values()):
            cause = str(self.record.trial(members[-1]).user_attrs.get(CAUSE)).rstrip(".")
            raise StudyFailed(
                f"All runs of {self._config.place} failed, the last one with: {cause}. Repair the cause and start "
                f"again under another --name; the output of the trials is in {self._config.place}/trial-*/output.txt."
            )
        found = replace_worst(
            scores,
            self.record.count,
            self._section,
            lambda number: self._seeds.generator("exploit", comparison, number),
            self._explored,
        )
        self.record.decide(comparison, found)
        for each in found:
            was, best = (_shown(scores[number]) for number in (each.replaces, each.parent))
            say(
                f"step {step:,}: trial {each.replaces} ({was}) ends, trial {each.trial} continues as a copy of trial "
                f"{each.parent} ({best}) with {label(each.values)}"
            )
        return found

    def _explored(self, parent: int, rng: Any) -> dict[str, Any]:
        return explore(self._values(parent), self._ranges, self._section, rng, self._config.experiment)

    def _copy(self, replacement: Replacement, step: int) -> None:
        """Do what was decided, or the rest of it; what is done already stays as it is."""
        number, parent = replacement.trial, replacement.parent
        if number >= self.record.count:
            self.record.add(replacement.values, self.record.seed(parent), parent, step)
        trial = self._trial(number)
        if run_in(trial.directory) is None:
            source = run_in(self._trial(parent).directory)
            if source is None:
                raise FileNotFoundError(
                    f"There is no run in {self._trial(parent).directory}, of which trial {number} is to be a copy. "
                    f"Restore it, or start again under another --name."
                )
            settings = _changed(self._config.experiment(self._values(parent)), trial.config)
            now = datetime.datetime.now().astimezone()
            target = trial.directory / directory_name(trial.config.name, trial.seed, now)
            copy_run(source, target, trial.config.name, settings)
        self.record.replace(replacement.replaces, f"trial {number} took its place, a copy of trial {parent}")
        mark_pruned(self._config.place / trial_key(replacement.replaces))

    def _launch(self, number: int, comparison: int) -> TrialLaunch:
        until = self._boundaries[comparison]
        title = f"part {comparison + 1} of {len(self._boundaries)}, trial {number}"
        return member_launch(self._trial(number), until, title, label(self._values(number)), self._options)

    def _trial(self, number: int) -> Trial:
        key = trial_key(number)
        own = {"experiment.name": f"{self._config.name}-{key}", "experiment.seed": self.record.seed(number)}
        config = self._config.experiment({**self._values(number), **own})
        directory = self._config.place / key / f"seed{config.experiment.seed}"
        return Trial(key, placed(config, directory), group=self._config.place.name)

    def _values(self, number: int) -> dict[str, Any]:
        return values_of(self.record.trial(number).params, self._ranges)


def _after(members: Sequence[int], decision: Sequence[Replacement]) -> list[int]:
    """The members after a comparison: each copy in the place of the trial that it replaces."""
    by_number = {each.replaces: each.trial for each in decision}
    return [by_number.get(number, number) for number in members]


def _changed(before: ExperimentConfig, after: ExperimentConfig) -> dict[str, Any]:
    """The settings that differ, but for those of a run itself: with what refers to the values of a trial."""
    old, new = (dict(_by_key(config)) for config in (before, after))
    return {key: value for key, value in new.items() if old.get(key) != value and not key.startswith("experiment.")}


def _by_key(config: ExperimentConfig) -> Mapping[str, Any]:
    return {".".join(place): value for place, value in flat(config.model_dump(mode="json"))}


def _shown(score: float | None) -> str:
    return "failed" if score is None else f"return {score:.1f}"
