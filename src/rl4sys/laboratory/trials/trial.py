"""A trial: one experiment config, trained in a process of its own."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl4sys.config import use_copies
from rl4sys.config.plugin_copies import plugin_texts, write_copies
from rl4sys.experiments import (
    ExperimentConfig,
    Logger,
    MetricRecord,
    Result,
    Run,
    RunBusy,
    RunDirectory,
    load_experiment,
)
from rl4sys.experiments.changed_settings import roll_back_changes
from rl4sys.experiments.manifest import origin_of_command
from rl4sys.experiments.starting_point import StartingPoint
from rl4sys.laboratory.run_index.index_logger import index_run
from rl4sys.laboratory.run_mirror import RunMirror
from rl4sys.laboratory.trials.launcher import Report, TrialLaunch
from rl4sys.laboratory.trials.names import label
from rl4sys.laboratory.trials.plugin_check import require_equal_plugins
from rl4sys.run_files import OUTPUT
from rl4sys.storage import StorageUnavailable, Superseded

if TYPE_CHECKING:
    from rl4sys.experiments.ranks.rank_group import RankGroup

_log = logging.getLogger(__name__)

TRAIN_RANK = "rl4sys.laboratory.trials.rank_trial:train_rank"
"""The task of one rank of a trial."""
TRAIN = "rl4sys.laboratory.trials.trial:train"
"""The task that trains a trial."""
_STARTING = ".starting"
"""The end of the name of a directory that is needed only until there is a run."""
_LOCK_SECONDS = 90.0
"""Seconds to wait for a process that is about to end: the orphan of a killed sweep saves first."""


@dataclass(frozen=True, slots=True)
class TrialOptions:
    """What the command line asks of every trial."""

    allow_fallback: bool = False
    debug: bool = False
    storage: str | None = None
    """The URL below which runs are kept, too."""
    settings: tuple[str, ...] = ()
    """Settings that change in runs that are resumed, as `key=value`."""
    from_step: int | None = None
    """The step of the checkpoint to resume runs from; what follows it is abandoned."""
    start: StartingPoint | None = None
    """Where new runs take their first weights from."""

    def to_values(self) -> dict[str, Any]:
        """As plain values, for another process."""
        return asdict(self)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> TrialOptions:
        """The inverse of `to_values`, also after JSON; other values are ignored."""
        given = {each.name: values[each.name] for each in fields(cls)}
        return cls(
            **{**given, "settings": tuple(given["settings"]), "start": StartingPoint.from_values(given["start"])}
        )

    @property
    def changes_runs(self) -> bool:
        """Whether a run that is resumed does not just continue, so that a finished one may have something to do."""
        return bool(self.settings) or self.from_step is not None

    def resume(self, directory: RunDirectory, group: RankGroup | None = None) -> Run:
        """Resume a run as asked for."""
        if self.from_step is not None:
            roll_back_changes(directory, self.from_step)
        run = Run.resume(
            directory, allow_fallback=self.allow_fallback, step=self.from_step, group=group, overrides=self.settings
        )
        if self.from_step is not None:
            run.abandon_later_steps()
        return run

    def place_of(self, *names: str) -> str | None:
        """The URL of one run."""
        if self.storage is None:
            return None
        base, question, options = self.storage.partition("?")
        return "/".join([base.rstrip("/"), *names]) + question + options


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration with one seed."""

    key: str
    config: ExperimentConfig
    """The fully resolved config."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What a sweep changes in its base, by dotted keys; without the seed."""
    has_own_directory: bool = True
    """Whether `experiment.directory` is for this trial alone, so that its run is found again and resumed there."""
    run: Path | None = None
    """The run to resume, of a trial without a directory of its own."""
    group: str = ""
    """What it belongs to besides the directory above its own, if names in storage would not be unique without it."""

    @property
    def label(self) -> str:
        """What is special about its configuration."""
        return label(self.changes)

    @property
    def seed(self) -> int:
        """Its seed."""
        return self.config.experiment.seed

    @property
    def title(self) -> str:
        """Its name on the screen."""
        return f"{self.label or self.config.name}, seed {self.seed}"

    @property
    def directory(self) -> Path:
        """Where its run is created."""
        return Path(self.config.experiment.directory)

    def launch(self, options: TrialOptions) -> TrialLaunch:
        """What a launcher needs to train it."""
        directory = self._output_directory()
        is_temporary = directory not in (self.directory, self.run)
        values = options.to_values() | {
            "config": self.config.model_dump(mode="json"),
            "resume": self.has_own_directory,
            "run": None if self.run is None else str(self.run),
            "output": str(directory / OUTPUT) if is_temporary else None,
            "is_elsewhere": False,
            "storage": options.place_of(*self._names(directory)),
            # A run has copies of those that it began with.
            "plugins": plugin_texts(self.config.plugins) if self.run is None else {},
            "origin": _origin(),
        }
        return TrialLaunch(
            key=self.key,
            task=TRAIN,
            values=values,
            directory=directory,
            is_temporary=is_temporary,
            title=self.title,
            steps=self.config.training.total_timesteps,
            ranks=self.config.training.ranks,
        )

    def _names(self, directory: Path) -> tuple[str, ...]:
        """The place of its run below a URL: sweep and trial, or the name of a directory that is unique, too."""
        if not self.has_own_directory:
            return (directory.name.strip(".").removesuffix(_STARTING),)
        return (*([self.group] if self.group else []), directory.parent.name, directory.name)

    def _output_directory(self) -> Path:
        """Where the process prints to: its own directory, its run, or one beside it until the run exists."""
        if self.has_own_directory:
            return self.directory
        if self.run is not None:
            return self.run
        self.directory.mkdir(parents=True, exist_ok=True)
        prefix = f".{self.config.name}-seed{self.seed}-"
        return Path(tempfile.mkdtemp(prefix=prefix, suffix=_STARTING, dir=self.directory))


@cache
def _origin() -> dict[str, Any]:
    """Where this process was called: asked of git once, not for each of a thousand trials."""
    return origin_of_command()


@dataclass(frozen=True, slots=True)
class Trained:
    """How the training of a run ended."""

    run: Path
    result: Result
    alert: str | None
    """Which alert stopped it early, if one did."""


def train(values: Mapping[str, Any], report: Report, stop: Callable[[], bool], group: RankGroup | None = None) -> bool:
    """Start a trial, or resume it; true when it is finished.

    The values are those of `Trial.launch`. The run directory, its records and an alert that stops it are reported. With
    a group of ranks, this is rank 0.
    """

    def begin(run: Run) -> Sequence[Logger]:
        moved = {} if values["output"] is None else {"output": str(_move(Path(values["output"]), run))}
        report({"run": str(run.directory.path), "step": run.steps, **moved})
        return [Reporter(report)]

    trained = train_trial(values, begin, stop, group)
    if trained is None:
        return False
    report({"run": str(trained.run)})
    if trained.alert is not None:
        report({"alert": trained.alert})
    return trained.result.finished


def train_trial(
    values: Mapping[str, Any],
    begin: Callable[[Run], Sequence[Logger]],
    stop: Callable[[], bool],
    group: RankGroup | None = None,
) -> Trained | None:
    """Start a trial, or resume it, unless it is finished; None if it was asked to stop before it began.

    `begin` gets the run before it trains, and returns its loggers.
    """
    if values["debug"]:
        logging.getLogger("rl4sys").setLevel(logging.DEBUG)
    use_copies(write_copies(Path(), values["plugins"]) if values["is_elsewhere"] else {})
    config, options = load_experiment(values["config"]), TrialOptions.from_values(values)
    directory = Path(config.experiment.directory)
    mirror = None if values["storage"] is None else RunMirror(values["storage"])
    with locked(directory, stop) if values["resume"] else nullcontext():
        existing = _existing(values, directory, mirror)
        if existing is not None:
            result = Result.read(existing.result)
            if result is not None and result.finished and not options.changes_runs:
                return Trained(existing.path, result, None)
            require_equal_plugins(existing, values["plugins"])
        if stop():
            return None

        def prepare(run: Run) -> Sequence[Logger]:
            loggers = begin(run)
            if values["debug"]:
                run.debug()
            return loggers

        place = TrainingPlace(values["origin"], mirror, is_indexed=not values["is_elsewhere"], group=group)
        return train_run(existing, config, prepare, stop, place, options)


@dataclass(frozen=True, slots=True)
class TrainingPlace:
    """Where a run trains, as far as its files are concerned."""

    origin: Mapping[str, Any]
    """The command and revision that the run comes from, which may not be those of this process."""
    mirror: RunMirror | None
    """Where a copy of the run is kept, if it is kept elsewhere."""
    is_indexed: bool
    """Whether this process keeps the index of runs up to date, and not the one that launched it."""
    group: RankGroup | None = None
    """The ranks that train it, of which this process is rank 0."""


def train_run(
    existing: RunDirectory | None,
    config: ExperimentConfig,
    begin: Callable[[Run], Sequence[Logger]],
    stop: Callable[[], bool],
    place: TrainingPlace,
    options: TrialOptions,
) -> Trained:
    """Resume the run that exists, or create one, and train it with the loggers that `begin` returns."""
    if existing is None:
        run = Run.create(
            config,
            allow_fallback=options.allow_fallback,
            origin=place.origin,
            group=place.group,
            start=options.start,
        )
    else:
        run = options.resume(existing, place.group)
    if place.mirror is not None:
        place.mirror.attach(run)
    loggers = begin(run)
    try:
        with index_run(run.directory.path, is_indexed=place.is_indexed) as index_logger:
            result = run.train([*loggers, index_logger], stop)
    except Superseded:
        # The run belongs to another process now.
        raise
    except Exception:
        _store_failure(place.mirror, run)
        raise
    if place.mirror is not None:
        place.mirror.conclude(run.directory.path)
    return Trained(run.directory.path, result, None if result.finished else run.stopped)


class Reporter:
    """A logger that sends records to the process that launched the trial."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def log(self, record: MetricRecord) -> None:
        """Send one record."""
        self._report({"record": json.loads(record.to_json())})

    def close(self) -> None:
        """Nothing to close."""


def run_in(directory: Path) -> RunDirectory | None:
    """The run of a trial with a directory of its own, if it has begun."""
    if not directory.is_dir():
        return None
    runs = sorted(path for path in directory.iterdir() if not path.name.startswith(".") and RunDirectory(path).is_run)
    return RunDirectory(runs[-1]) if runs else None


def result_in(directory: Path) -> Result | None:
    """The result of a trial with a directory of its own, if it is finished."""
    run = run_in(directory)
    result = None if run is None else Result.read(run.result)
    return result if result is not None and result.finished else None


def _existing(values: Mapping[str, Any], directory: Path, mirror: RunMirror | None) -> RunDirectory | None:
    """The run to continue: that of an earlier attempt, in storage or here."""
    if mirror is not None:
        return mirror.fetch(directory)
    if values["run"] is not None:
        run = Path(values["run"])
        with locked(run, lambda: False):
            # A process that was thought lost saves before it ends.
            return RunDirectory(run)
    return run_in(directory) if values["resume"] else None


def _store_failure(mirror: RunMirror | None, run: Run) -> None:
    """Keep what there is of a run that failed, with its cause; the failure itself is what matters."""
    if mirror is not None:
        try:
            mirror.conclude(run.directory.path)
        except (StorageUnavailable, Superseded) as error:
            _log.warning("%s", error)


@contextmanager
def locked(directory: Path, stop: Callable[[], bool], timeout: float = _LOCK_SECONDS) -> Iterator[Path]:
    """Keep other processes out of a directory, which is made if needed; wait up to `timeout` seconds for the lock."""
    directory.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout
    while True:
        try:
            lock = RunDirectory(directory).hold()
            break
        except RunBusy:
            if stop() or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    with lock:
        yield directory


def _move(output: Path, run: Run) -> Path:
    """Move the output file, to which the process keeps writing, into the run."""
    target = run.directory.path / OUTPUT
    os.replace(output, target)
    output.parent.rmdir()
    return target
