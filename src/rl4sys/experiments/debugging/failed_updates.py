"""Keeps the batch of an update that was not finite, with what is needed to do that update again."""

from __future__ import annotations

import dataclasses
import logging
import shutil
from pathlib import Path
from typing import Any

import torch

from rl4sys.algorithms import Progress, run_update
from rl4sys.atomic_files import publish_directory
from rl4sys.checkpoints.files import CheckpointContents, read_checkpoint, write_checkpoint
from rl4sys.environments import Grade
from rl4sys.experience import Sequences, StreamKey, Transitions
from rl4sys.experiments.components import Components
from rl4sys.experiments.config import load_experiment
from rl4sys.experiments.debugging.non_finite_values import non_finite_values
from rl4sys.experiments.monitoring.events import Events
from rl4sys.learning import Learner
from rl4sys.networks import NonFiniteUpdate
from rl4sys.run_files import CONFIG, DEBUG
from rl4sys.state import State

_log = logging.getLogger(__name__)

_PREFIX = "update-"
_MOST = 5
"""Updates of one run that are kept: the first are the most useful."""
_MOST_EVENTS = 100
"""Updates of one run that get a line among its events."""


class NoFailedUpdate(ValueError):
    """There is no update to do again in a directory."""


class FailedUpdates:
    """The directories `update-N` below a run's `debug/`."""

    before: State | None = None
    """The algorithm as it was before the update, if the debug mode recorded it."""

    def __init__(self, directory: Path, learner: Learner, events: Events) -> None:
        self._directory, self._learner, self._events = directory, learner, events

    def keep(self, batch: Any, error: NonFiniteUpdate) -> None:
        """Trace a failed update, and keep it unless enough are kept. A disk that takes none ends no run.

        Batches that a buffer of the user makes in its own way are traced only.
        """
        learner = self._learner
        found = non_finite_values(learner.algorithm, batch, error)
        place = self._directory / f"{_PREFIX}{learner.updates + 1:09d}-{learner.skips.in_row + 1}"
        details = {"update": learner.updates + 1, "cause": str(error), "faults": found}
        is_ours = isinstance(batch, Transitions | Sequences)
        if not is_ours or len(list(self._directory.glob(f"{_PREFIX}*"))) >= _MOST:
            if learner.skips.total < _MOST_EVENTS:
                self._events.note(learner.steps, "skipped", **details)
            return
        try:
            self._write(place, batch, details)
        except OSError as problem:
            _log.warning("The batch of a failed update could not be kept: %s", problem)
            return
        self._events.note(learner.steps, "skipped", **details, batch=str(place))
        _log.warning("Not finite, or too large: %s. Do it again with: rl4sys replay-update %s", "; ".join(found), place)

    def _write(self, place: Path, batch: Any, details: State) -> None:
        progress = self._learner.progress
        state = {
            **details,
            "algorithm": self._learner.algorithm.train_state.state() if self.before is None else self.before,
            "is_exact": self.before is not None,
            "progress": [progress.steps, progress.total_steps],
            "kind": type(batch).__name__,
            "batch": _plain(batch),
        }
        aside = place.with_name(f".{place.name}.tmp")
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        write_checkpoint(aside, CheckpointContents(self._learner.steps, state, ()))
        publish_directory(aside, place)


@dataclasses.dataclass(frozen=True, slots=True)
class ReplayedUpdate:
    """A failed update, done again."""

    step: int
    update: int
    cause: str
    """Why it failed then."""
    error: str | None
    """Why it fails now; None if it does not."""
    faults: list[str]
    """What is not finite or too large, now or, if it does not fail now, then."""
    is_exact: bool
    """Whether it began from the very state that it began from then; only the debug mode takes note of that."""


def replay_update(place: Path) -> ReplayedUpdate:
    """Do a kept update again, with the config of its run, and trace what is not finite."""
    if not place.name.startswith(_PREFIX) or not place.is_dir():
        raise NoFailedUpdate(f"{place} is no failed update. {_where_to_look(place)}")
    contents = read_checkpoint(place)
    state = contents.state
    config = load_experiment(place.parent.parent / CONFIG)
    algorithm = Components(config, torch.device("cpu"), Grade.E3).algorithm()
    algorithm.train_state.restore(state["algorithm"])
    algorithm.train_state.advance(Progress(*state["progress"]))
    batch = _batch(state["kind"], state["batch"])
    error, found = None, list(state["faults"])
    try:
        run_update(algorithm, batch)
    except NonFiniteUpdate as problem:
        error, found = str(problem), non_finite_values(algorithm, batch, problem)
    return ReplayedUpdate(contents.step, state["update"], state["cause"], error, found, state["is_exact"])


def _where_to_look(place: Path) -> str:
    """The updates that are kept near a place, which may be a run or its `debug/`."""
    near = (place, place / DEBUG, place.parent)
    found = next((kept for kept in (sorted(each.glob(f"{_PREFIX}*")) for each in near) if kept), [])
    if found:
        return f"There is: {', '.join(map(str, found))}"
    return "A run keeps updates that were not finite in RUN/debug/update-…; without such a directory none was left out."


def _plain(batch: Any) -> State:
    """The fields of a batch; streams as lists, everything else as it is."""
    fields = {field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)}
    if "streams" in fields:
        fields["streams"] = [[stream.client, stream.agent, stream.lane] for stream in fields["streams"]]
    return fields


def _batch(kind: str, fields: State) -> Transitions | Sequences:
    if kind == Transitions.__name__:
        return Transitions(**fields)
    streams = tuple(StreamKey(*parts) for parts in fields["streams"])
    return Sequences(**{**fields, "streams": streams})
