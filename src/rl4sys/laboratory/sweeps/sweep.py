"""Runs a sweep: what is finished stays, what was interrupted goes on, what is new begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import yaml

from rl4sys.atomic_files import replace_file
from rl4sys.laboratory.sweeps.config import SweepConfig
from rl4sys.laboratory.sweeps.plan import Trial
from rl4sys.laboratory.sweeps.summary import SweepSummary, summarize
from rl4sys.laboratory.trials.launcher import Ended, Launcher, News, Order, Outcome, Reported, carry_out
from rl4sys.laboratory.trials.trial import TRAIN, held, in_words, order_values, result_in
from rl4sys.laboratory.trials.view import TrialView


def run_sweep(
    sweep: SweepConfig,
    trials: Sequence[Trial],
    launcher: Launcher,
    view: Callable[[int], TrialView],
    stop: Callable[[], bool],
    *,
    allow_fallback: bool,
) -> SweepSummary:
    """Train what is not finished yet, and sum up. `view` is made with the number of trials that are."""
    with held(sweep.place, stop, patience=0):
        description = yaml.safe_dump(sweep.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        replace_file(sweep.place / "sweep.yaml", description.encode())
        waiting = [trial for trial in trials if result_in(trial.place) is None]
        course = _Course(sweep, trials, view(len(trials) - len(waiting)))
        orders = (
            Order(trial.key, TRAIN, order_values(trial.config, allow_fallback=allow_fallback), trial.place)
            for trial in waiting
        )
        try:
            carry_out(launcher, orders, course, stop)
        finally:
            summary = course.sum_up()
        return summary


class _Course:
    """Follows the trials, and keeps the summary up to date on the disk."""

    def __init__(self, sweep: SweepConfig, trials: Sequence[Trial], view: TrialView) -> None:
        self._sweep, self._view = sweep, view
        self._trials = {trial.key: trial for trial in trials}
        self._causes: dict[str, str] = {}
        self.sum_up()

    def started(self, order: Order) -> None:
        trial = self._trials[order.key]
        self._view.begin(trial.key, trial.title, trial.config.training.total_timesteps)

    def take(self, news: News) -> None:
        match news:
            case Reported(key, facts):
                self._view.hear(key, facts)
            case Ended(key, outcome, cause):
                self._end(key, outcome, cause)
                self.sum_up()

    def _end(self, key: str, outcome: Outcome, cause: str | None) -> None:
        if outcome is Outcome.FAILED:
            self._causes[key] = cause or "it failed"
            self._view.end(key, f"failed: {cause}", failed=True)
        elif outcome is Outcome.STOPPED:
            self._view.end(key, "stopped, with a checkpoint", counts=False)
        else:
            self._view.end(key, in_words(result_in(self._trials[key].place)))

    def sum_up(self) -> SweepSummary:
        summary = summarize(self._sweep.name or "", self._sweep.score, list(self._trials.values()), self._causes)
        summary.write(self._sweep.place / "summary.json")
        return summary
