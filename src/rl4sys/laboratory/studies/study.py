"""Runs a study: the values that are tried follow those that did well; what does badly is given up early."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import yaml
from optuna.trial import FrozenTrial, TrialState

from rl4sys.atomic_files import replace_file
from rl4sys.config import ConfigError
from rl4sys.experiments import ExperimentConfig
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.journal import attach, frozen, open_study, suggest, values_of
from rl4sys.laboratory.studies.trial import CAUSE, TUNE, order_values
from rl4sys.laboratory.trials.config import placed
from rl4sys.laboratory.trials.launcher import Ended, Launcher, News, Order, Outcome, Reported, carry_out
from rl4sys.laboratory.trials.names import label
from rl4sys.laboratory.trials.trial import held
from rl4sys.laboratory.trials.view import TrialView

BEST = "best.yaml"
_HOPELESS = 3
"""Trials that fail, and nothing else, before a study ends: more would fail of the same."""


class StudyFailed(RuntimeError):
    """Every trial of a study failed."""


def run_study(
    config: TuneConfig,
    launcher: Launcher,
    view: Callable[[int], TrialView],
    stop: Callable[[], bool],
    *,
    allow_fallback: bool,
) -> optuna.Study:
    """Go on with a study until it has all its trials. `view` is made with the number of those that are over."""
    with held(config.place, stop, patience=0):
        study = open_study(config, config.place)
        states = [trial.state for trial in study.get_trials(deepcopy=False)]
        orders = _Orders(config, study, allow_fallback, failed_before=states.count(TrialState.FAIL))
        course = _Course(config, study, view(sum(state.is_finished() for state in states)))
        carry_out(launcher, orders.all(), course, stop)
        course.keep_best()
        if orders.are_hopeless():
            cause = study.get_trials(deepcopy=False)[-1].user_attrs.get(CAUSE)
            raise StudyFailed(
                f"All trials of {config.place} failed, the last of this: {cause}. Repair it, then run the same command "
                f"again; what was printed is in {config.place}/trial-*/output.txt."
            )
        return study


@dataclass(frozen=True, slots=True)
class _Orders:
    """What there is to do: first what an earlier call left unfinished, then what the study suggests."""

    config: TuneConfig
    study: optuna.Study
    allow_fallback: bool
    failed_before: int

    def are_hopeless(self) -> bool:
        """Whether the first trials of this call failed, and none that is over ever did anything else."""
        states = [trial.state for trial in self.study.get_trials(deepcopy=False)]
        failed = states.count(TrialState.FAIL)
        return failed - self.failed_before >= _HOPELESS and failed == sum(state.is_finished() for state in states)

    def all(self) -> Iterator[Order | None]:
        """Each when there is room for it; None while that depends on how others end."""
        ranges = self.config.ranges()
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if trial.params.keys() == ranges.keys():
                yield self._order(trial.number, values_of(trial.params, ranges))
            else:
                self._give_up(trial.number, "the study was killed while it chose the values")
        while len(self.study.get_trials(deepcopy=False)) < self.config.trials:
            if self.are_hopeless():
                if not self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                    return
                # One of those at work may still do better.
                yield None
                continue
            number, values = suggest(self.study, self.config)
            try:
                order = self._order(number, values)
            except ConfigError as error:
                # Values that do not go together: not worth a process, but worth telling.
                self._give_up(number, str(error))
                continue
            yield order

    def _give_up(self, number: int, cause: str) -> None:
        attach(self.study, number).set_user_attr(CAUSE, cause)
        self.study.tell(number, state=TrialState.FAIL)

    def _order(self, number: int, values: dict[str, Any]) -> Order:
        key = f"trial-{number:04d}"
        place = self.config.place / key
        configs = [self._experiment(values, seed, place) for seed in self.config.seeds or (None,)]
        return Order(key, TUNE, order_values(self.config, number, configs, allow_fallback=self.allow_fallback), place)

    def _experiment(self, values: dict[str, Any], seed: int | None, place: Path) -> ExperimentConfig:
        given: dict[str, Any] = {} if seed is None else {"experiment.seed": seed}
        named = {"experiment.name": f"{self.config.name}-{place.name}"}
        config = self.config.experiment({**values, **named, **given})
        return placed(config, place / f"seed{config.experiment.seed}")


class _Course:
    """Follows the trials, and keeps the best config on the disk."""

    def __init__(self, config: TuneConfig, study: optuna.Study, view: TrialView) -> None:
        self._config, self._study, self._view = config, study, view
        self._ranges = config.ranges()
        self._kept: int | None = None

    def started(self, order: Order) -> None:
        trial = frozen(self._study, order.values["number"])
        configs = order.values["configs"]
        steps = sum(config["training"]["total_timesteps"] for config in configs)
        settings = label(values_of(trial.params, self._ranges))
        self._view.begin(order.key, f"trial {trial.number}", steps, settings)

    def take(self, news: News) -> None:
        match news:
            case Reported(key, facts):
                self._view.hear(key, facts)
            case Ended(key, Outcome.STOPPED):
                self._view.end(key, "stopped, with a checkpoint", counts=False)
            case Ended(key, Outcome.FAILED, cause):
                over = frozen(self._study, int(key.removeprefix("trial-"))).state.is_finished()
                self._view.end(key, f"failed: {cause}", failed=True, counts=over)
            case Ended(key):
                self._view.end(key, _told(frozen(self._study, int(key.removeprefix("trial-")))))
                self.keep_best()

    def keep_best(self) -> None:
        """Write the best config, if there is a better one than was written."""
        best = best_of(self._study)
        if best is None or best.number == self._kept:
            return
        config = self._config.experiment(values_of(best.params, self._ranges))
        named = config.experiment.model_copy(update={"name": f"{self._config.name}-best"})
        values = config.model_copy(update={"experiment": named}).model_dump(mode="json")
        text = (
            f"# The best of {self._config.place}: trial {best.number}, {self._config.score} return {best.value:.2f}.\n"
            f"# Train it with: rl4sys train {self._config.place / BEST}\n"
            f"{yaml.safe_dump(values, sort_keys=False, allow_unicode=True)}"
        )
        replace_file(self._config.place / BEST, text.encode())
        self._kept = best.number


def best_of(study: optuna.Study) -> FrozenTrial | None:
    """The trial with the best score, if any has one."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return max(complete, key=lambda trial: trial.value or 0.0, default=None)


def _told(trial: FrozenTrial) -> str:
    if trial.state is TrialState.PRUNED and trial.last_step is not None:
        stopped = f": {trial.user_attrs[CAUSE]}" if CAUSE in trial.user_attrs else ""
        reached = trial.intermediate_values[trial.last_step]
        return f"given up at step {trial.last_step:,}, return {reached:.1f}{stopped}"
    return f"finished, return {trial.value:.1f}" if trial.value is not None else trial.state.name.lower()
