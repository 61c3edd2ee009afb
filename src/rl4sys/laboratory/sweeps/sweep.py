"""Runs the trials of a sweep, or of one experiment with several seeds, which is a sweep over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import yaml

from rl4sys.atomic_files import replace_file
from rl4sys.config.plugin_copies import plugin_texts
from rl4sys.laboratory.sweeps.plan import SweepConfig
from rl4sys.laboratory.sweeps.summary import SweepSummary, summarize
from rl4sys.laboratory.trials.driver import EndLine, TrialDriver, TrialState, describe_end
from rl4sys.laboratory.trials.launcher import Launcher, Outcome
from rl4sys.laboratory.trials.plugin_check import require_equal_plugins
from rl4sys.laboratory.trials.trial import Trial, TrialOptions, locked, result_in, run_in
from rl4sys.laboratory.trials.view import TrialView


def run_sweep(
    sweep: SweepConfig,
    trials: Sequence[Trial],
    launcher: Launcher,
    view: Callable[[int], TrialView],
    stop: Callable[[], bool],
    options: TrialOptions,
) -> SweepSummary:
    """Start or resume the trials that are not finished, and summarize all.

    `view` is called with the number of trials that are finished already.
    """
    with locked(sweep.place, stop, timeout=0):
        description = yaml.safe_dump(sweep.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        replace_file(sweep.place / "sweep.yaml", description.encode())
        causes: dict[str, str] = {}

        def write_summary() -> SweepSummary:
            summary = summarize(sweep.name or "", sweep.score, trials, causes)
            summary.write(sweep.place / "summary.json")
            return summary

        def after_end(state: TrialState) -> None:
            if (failure := _failure(state)) is not None:
                causes[state.key] = failure
            write_summary()

        write_summary()
        waiting = [trial for trial in trials if result_in(trial.directory) is None]
        driver = TrialDriver(view(len(trials) - len(waiting)), _describe, after_end)
        try:
            driver.run(launcher, (trial.launch(options) for trial in waiting), stop)
        finally:
            summary = write_summary()
        return summary


def require_unchanged_plugins(trials: Sequence[Trial]) -> None:
    """Refuse to continue trials whose plug-ins have changed, before anything is started."""
    texts = plugin_texts(trials[0].config.plugins)
    for trial in trials:
        run = run_in(trial.directory) if texts else None
        if run is not None and result_in(trial.directory) is None:
            require_equal_plugins(run, texts)


def run_seeds(
    trials: Sequence[Trial],
    launcher: Launcher,
    view: TrialView,
    stop: Callable[[], bool],
    options: TrialOptions,
) -> list[TrialState]:
    """Train or resume a run for each trial, and return how each ended; those that were not started have no outcome."""
    driver = TrialDriver(view)
    driver.run(launcher, (trial.launch(options) for trial in trials), stop)
    return [driver.states.get(trial.key) or TrialState(trial.key, trial.title) for trial in trials]


def _describe(state: TrialState) -> EndLine:
    failure = _failure(state)
    return describe_end(state) if failure is None else EndLine(f"failed: {failure}", failed=True)


def _failure(state: TrialState) -> str | None:
    """Why a trial failed; in a sweep, one that an alert stopped counts as failed."""
    if state.outcome is Outcome.FAILED:
        return state.cause or "it failed"
    if state.alert is not None:
        return f"an alert stopped it, with a checkpoint: {state.alert}"
    return None
