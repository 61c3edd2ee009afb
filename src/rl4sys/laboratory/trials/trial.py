"""Trials: one config each, trained in a place of its own, where it is found again whatever ended it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rl4sys.experiments import ExperimentConfig, MetricRecord, Result, Run, RunBusy, RunDirectory, load_experiment
from rl4sys.laboratory.run_index.index_logger import follow
from rl4sys.laboratory.trials.launcher import Report

TRAIN = "rl4sys.laboratory.trials.trial:train"
"""The task that trains a trial."""
_PATIENCE = 90.0
"""Seconds to wait for a process that is just ending: the orphan of a killed sweep saves first."""


class StoppedByAlert(RuntimeError):
    """An alert has stopped a trial; the same order later goes on from there."""


def train(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Begin a trial, or go on with it where it was; true when it is finished.

    `values` are those of `order_values`. The run's directory and its records are reported.
    """
    config = load_experiment(values["config"])
    with held(Path(config.experiment.directory), stop) as place:
        if result_in(place) is not None:
            return True
        if stop():
            return False
        run = open_run(place, config, allow_fallback=values["allow_fallback"])
        report({"directory": str(run.directory.path), "step": run.steps})
        with follow(run.directory.path) as follower:
            result = run.train([Reporter(report), follower], stop)
        if run.stopped is not None and not result.finished:
            raise StoppedByAlert(f"an alert stopped it, with a checkpoint: {run.stopped}")
        return result.finished


def order_values(config: ExperimentConfig, *, allow_fallback: bool) -> dict[str, Any]:
    """What the task `TRAIN` is given."""
    return {"config": config.model_dump(mode="json"), "allow_fallback": allow_fallback}


def open_run(place: Path, config: ExperimentConfig, *, allow_fallback: bool) -> Run:
    """The run of a place as it was left, or a new one. This process must hold the place."""
    directory = run_in(place)
    if directory is None:
        return Run.create(config, allow_fallback=allow_fallback)
    return Run.resume(directory, allow_fallback=allow_fallback)


def result_in(place: Path) -> Result | None:
    """How the trial of a place ended, if it did."""
    directory = run_in(place)
    result = None if directory is None else Result.read(directory.result)
    return result if result is not None and result.finished else None


def in_words(result: Result | None) -> str:
    """How a trial that is finished ended, in a few words."""
    last, best = (None, None) if result is None else (result.evaluation, result.best)
    shown = ["–" if value is None else f"{value:.1f}" for value in (last, best)]
    return f"finished, last {shown[0]}, best {shown[1]}"


class Reporter:
    """A logger that hands records to whoever gave the order."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def log(self, record: MetricRecord) -> None:
        """Hand over one record."""
        self._report({"record": json.loads(record.to_json())})

    def close(self) -> None:
        """Nothing is held."""


def run_in(place: Path) -> RunDirectory | None:
    """The run of a trial, if it has begun."""
    if not place.is_dir():
        return None
    runs = sorted(path for path in place.iterdir() if not path.name.startswith(".") and RunDirectory(path).is_run)
    return RunDirectory(runs[-1]) if runs else None


@contextmanager
def held(place: Path, stop: Callable[[], bool], patience: float = _PATIENCE) -> Iterator[Path]:
    """Keep other processes out of a place. One that is just ending there is waited for, so many seconds."""
    place.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + patience
    while True:
        try:
            lock = RunDirectory(place).hold()
            break
        except RunBusy:
            if stop() or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    with lock:
        yield place
