"""Keeps the batch of an update that was not finite, finds its NaN, Inf and huge values, and can do it again."""

from __future__ import annotations

import dataclasses
import logging
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rl4sys.algorithms import Progress, run_update
from rl4sys.atomic_files import publish_directory
from rl4sys.checkpoints.files import CheckpointContents, read_checkpoint, write_checkpoint
from rl4sys.engine import Algorithm
from rl4sys.environments import Grade
from rl4sys.experience import Array, Sequences, StreamKey, Transitions
from rl4sys.experiments.components import Components
from rl4sys.experiments.config import load_experiment
from rl4sys.experiments.monitoring.events import Events
from rl4sys.learning import Learner
from rl4sys.networks import NonFiniteUpdate
from rl4sys.run_files import CONFIG, DEBUG
from rl4sys.state import State

_log = logging.getLogger(__name__)
_SHOWN = 3
_TOO_LARGE = 1e15
"""Sums of squares of larger numbers soon overflow float32."""
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
        found = _non_finite_values(learner.algorithm, batch, error)
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
        error, found = str(problem), _non_finite_values(algorithm, batch, problem)
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


def _non_finite_values(algorithm: Algorithm, batch: Any, error: NonFiniteUpdate) -> list[str]:
    """What is not finite or too large, from what comes first: the batch, the weights, then the gradients."""
    return [*_in_batch(batch), *_in_weights(algorithm), *(f"gradient of {name}" for name in error.tensors)]


def _columns(batch: Any) -> Iterator[tuple[str, Array]]:
    """The arrays of a batch by name."""
    if not dataclasses.is_dataclass(batch):
        return
    for field in dataclasses.fields(batch):
        value = getattr(batch, field.name)
        if isinstance(value, Mapping):
            yield from ((f"{field.name}.{name}", np.asarray(array)) for name, array in value.items())
        elif isinstance(value, np.ndarray):
            yield field.name, value


def _in_batch(batch: Any) -> Iterator[str]:
    for name, array in _columns(batch):
        if array.dtype.kind != "f":
            continue
        places = np.argwhere(_is_wrong(array))
        if len(places):
            shown = ", ".join(f"[{', '.join(map(str, place))}] is {array[tuple(place)]}" for place in places[:_SHOWN])
            more = ", …" if len(places) > _SHOWN else ""
            yield f"batch {name}: {len(places)} of {array.size} numbers ({shown}{more})"


def _in_weights(algorithm: Algorithm) -> Iterator[str]:
    for group, parameters in algorithm.train_state.parameters():
        for name, view in parameters.views.items():
            wrong = int(_is_wrong(view.detach().cpu().numpy()).sum())
            if wrong:
                yield f"weights of {group}, {name}: {wrong} of {view.numel()} numbers"


def _is_wrong(array: Array) -> Array:
    """Where numbers are not finite, or too large."""
    wrong: Array = ~(np.abs(array) < _TOO_LARGE)
    return wrong
