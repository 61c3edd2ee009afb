"""Several new runs at once, such as one experiment with several seeds, each in a process of its own."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl4sys.experiments import ExperimentConfig, Result, Run, load_experiment
from rl4sys.laboratory.run_index.index_logger import follow
from rl4sys.laboratory.trials.launcher import Ended, Launcher, News, Order, Outcome, Report, Reported, carry_out
from rl4sys.laboratory.trials.trial import Reporter, in_words
from rl4sys.laboratory.trials.view import TrialView
from rl4sys.run_files import OUTPUT, RESULT

TRAIN = "rl4sys.laboratory.trials.side_by_side:train"
"""The task that trains a new run."""


@dataclass(slots=True)
class SideRun:
    """One of several runs, and how it ended."""

    config: ExperimentConfig
    directory: Path | None = None
    """Its run directory, once there is one."""
    outcome: Outcome | None = None
    """None if it was never started."""
    cause: str | None = None
    """Why it failed, or which alert stopped it, if either is so."""
    output: Path | None = None
    """What its process printed, if it printed anything."""

    @property
    def title(self) -> str:
        """How it is called on the screen."""
        return f"{self.config.name}, seed {self.config.experiment.seed}"


def train_side_by_side(
    configs: Sequence[ExperimentConfig],
    launcher: Launcher,
    view: TrialView,
    stop: Callable[[], bool],
    wishes: Mapping[str, bool],
) -> list[SideRun]:
    """Train all of them, as many at a time as the launcher has room for; one that fails does not stop the others.

    `wishes` are `allow_fallback` and `debug`.
    """
    course = _Course([SideRun(config) for config in configs], view)
    try:
        carry_out(launcher, course.orders(wishes), course, stop)
    finally:
        course.tidy()
    return course.runs


def train(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Train a new run; true when it is finished. Its directory and its records are reported."""
    if values["debug"]:
        logging.getLogger("rl4sys").setLevel(logging.DEBUG)
    if stop():
        return False
    run = Run.create(load_experiment(values["config"]), allow_fallback=values["allow_fallback"])
    output = run.directory.path / OUTPUT
    _move(Path(values["output"]), output)
    report({"directory": str(run.directory.path), "output": str(output)})
    if values["debug"]:
        run.debug()
    with follow(run.directory.path) as follower:
        result = run.train([Reporter(report), follower], stop)
    if run.stopped is not None and not result.finished:
        report({"stopped": run.stopped})
    return result.finished


def _move(output: Path, place: Path) -> None:
    """What was printed so far, and all that will be, belongs into the run."""
    os.replace(output, place)
    output.parent.rmdir()


class _Course:
    """Follows the runs."""

    def __init__(self, runs: list[SideRun], view: TrialView) -> None:
        self.runs, self._view = runs, view

    def orders(self, wishes: Mapping[str, bool]) -> Iterator[Order]:
        """One for each run, with a place beside the runs for what is printed before there is one."""
        for number, run in enumerate(self.runs):
            root = Path(run.config.experiment.directory)
            root.mkdir(parents=True, exist_ok=True)
            stem = f"{run.config.name}-seed{run.config.experiment.seed}"
            place = Path(tempfile.mkdtemp(prefix=f".{stem}-", suffix=".starting", dir=root))
            run.output = place / OUTPUT
            values = {"config": run.config.model_dump(mode="json"), "output": str(run.output), **wishes}
            yield Order(str(number), TRAIN, values, place)

    def started(self, order: Order) -> None:
        run = self.runs[int(order.key)]
        self._view.begin(order.key, run.title, run.config.training.total_timesteps)

    def take(self, news: News) -> None:
        run = self.runs[int(news.key)]
        match news:
            case Reported(_, {"directory": directory, "output": output}):
                run.directory, run.output = Path(directory), Path(output)
            case Reported(_, {"stopped": reason}):
                run.cause = reason
            case Reported(key, facts):
                self._view.hear(key, facts)
            case Ended(_, outcome, cause):
                run.outcome, run.cause = outcome, run.cause or cause
                self._end(news.key, run)

    def _end(self, key: str, run: SideRun) -> None:
        if run.outcome is Outcome.FAILED:
            self._view.end(key, f"failed: {run.cause}", failed=True)
        elif run.outcome is Outcome.STOPPED:
            how = "stopped before it began" if run.directory is None else "stopped, with a checkpoint"
            self._view.end(key, how if run.cause is None else f"stopped by an alert: {run.cause}", counts=False)
        else:
            result = None if run.directory is None else Result.read(run.directory / RESULT)
            self._view.end(key, in_words(result))

    def tidy(self) -> None:
        """Remove what says nothing: the output of processes that printed nothing, and its place if there is no run."""
        for run in self.runs:
            if run.output is None or not run.output.is_file() or run.output.stat().st_size > 0:
                continue
            run.output.unlink()
            if run.directory is None:
                run.output.parent.rmdir()
            run.output = None
