"""What the index knows about a run, and how that is read from the run's directory, which is the truth."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from rl4sys.laboratory.run_index.labels import Labels, LabelsDamaged, read_labels
from rl4sys.laboratory.run_index.training_process import TrainingProcess, is_held, read_process
from rl4sys.run_files import (
    CONFIG,
    MANIFEST,
    RunProgress,
    is_resumable,
    read_config,
    read_json,
    read_progress,
    read_result,
)

_SETTLED = 2.0
"""Seconds after which a directory's time of change is believed: two changes may share one tick of the clock."""


class Status(StrEnum):
    """How a run is."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    """Stopped or killed; it can be resumed."""
    FAILED = "failed"


UNFINISHED = (Status.INTERRUPTED, Status.FAILED)
"""How a run is that may be resumed."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One line of the index. Everything in it can be read from the run's directory again."""

    id: str
    """The directory, as seen from the directory that holds the index."""
    name: str
    tags: tuple[str, ...]
    note: str
    """The last note."""
    algorithm: str
    environment: str
    seed: int | None
    created: float
    """Seconds since 1970."""
    git: str | None
    dirty: bool | None
    """Whether the working tree had changes that were not committed."""
    config: str
    """Hash of what decides what is learned, but for the seed: equal for runs that differ by chance alone."""
    status: Status
    cause: str | None
    """What a failed run failed of."""
    best: float | None
    last: float | None
    steps: int
    total: int
    """Steps that the run is meant to have."""
    host: str | None
    stamp: int
    """When the directory was last changed, in nanoseconds; 0 if it must be read again in any case."""

    resumable: bool
    """Whether there is a checkpoint to go on from."""

    def facts(self, root: Path) -> dict[str, Any]:
        """The record for scripts: time as text, and the places and commands that follow from the rest."""
        return self.own_facts() | {"directory": f"{root}/{self.id}", "resume": self.resume_command(root)}

    def own_facts(self) -> dict[str, Any]:
        """What of it does not depend on where somebody stands who looks at it."""
        values = {name: getattr(self, name) for name in COLUMNS if name != "stamp"}
        created = datetime.datetime.fromtimestamp(self.created, datetime.UTC)
        return values | {"created": created.isoformat(timespec="seconds")}

    def resume_command(self, root: Path) -> str | None:
        """How to go on with a run that did not end well, if there is something to go on from."""
        return resume_command(f"{root}/{self.id}") if self.resumable and self.status in UNFINISHED else None


COLUMNS = tuple(field.name for field in fields(RunRecord))


def resume_command(directory: str) -> str:
    """How to go on with the run in a directory."""
    return f"rl4sys resume {directory}"


def read_record(root: Path, id_: str) -> RunRecord:
    """The record of a run, from its directory alone. A run that cannot be read is a failed one, with the reason."""
    run = root / id_
    changed = run.stat().st_mtime_ns
    try:
        return _read(run, id_, changed)
    except (ValueError, KeyError, TypeError, AttributeError, PermissionError) as error:
        return _unreadable(run, id_, changed, f"its files cannot be read: {error}")


def _read(run: Path, id_: str, changed: int) -> RunRecord:
    config, manifest = read_config(run), _manifest(run)
    labels, process = _labels(run), read_process(run)
    status = _status(run, process)
    progress = read_progress(run)
    git = manifest["git"] or {}
    algorithm, environment = config["algorithm"]["name"], config["environment"]["name"]
    return RunRecord(
        id=id_,
        name=config["experiment"]["name"] or f"{algorithm}-{environment}".replace("/", "-").replace(":", "-"),
        tags=labels.tags,
        note=labels.notes[-1].text if labels.notes else "",
        algorithm=algorithm,
        environment=environment,
        seed=manifest["seed"],
        created=process.created if process is not None else (run / CONFIG).stat().st_mtime,
        git=git.get("revision"),
        dirty=git.get("dirty"),
        config=manifest["config"],
        status=status,
        cause=process.cause if process is not None and status is Status.FAILED else None,
        best=progress.best,
        last=progress.last,
        steps=progress.steps,
        total=config["training"]["total_timesteps"],
        host=process.host if process is not None else None,
        stamp=changed if _is_settled(status, process, changed) else 0,
        resumable=is_resumable(run),
    )


def _unreadable(run: Path, id_: str, changed: int, cause: str) -> RunRecord:
    return RunRecord(
        id=id_,
        name=run.name,
        tags=(),
        note="",
        algorithm="?",
        environment="?",
        seed=None,
        created=changed / 1e9,
        git=None,
        dirty=None,
        config="",
        status=Status.FAILED,
        cause=cause,
        best=None,
        last=None,
        steps=0,
        total=0,
        host=None,
        # Read again each time: what mends a file need not change the directory.
        stamp=0,
        resumable=False,
    )


def _labels(run: Path) -> Labels:
    """Tags and notes; none where they are damaged, which says nothing about how the run went: `show` tells it."""
    try:
        return read_labels(run)
    except LabelsDamaged:
        return Labels()


def _manifest(run: Path) -> Mapping[str, Any]:
    try:
        return read_json(run / MANIFEST)
    except json.JSONDecodeError as error:
        raise ValueError(f"{MANIFEST}: {error}") from error


def _status(run: Path, process: TrainingProcess | None) -> Status:
    if read_result(run).get("finished"):
        return Status.FINISHED
    if (process is not None and process.is_alive) or is_held(run):
        return Status.RUNNING
    return Status.FAILED if process is not None and process.cause is not None else Status.INTERRUPTED


def _is_settled(status: Status, process: TrainingProcess | None, changed: int) -> bool:
    """Whether whatever happens to the run from now on will change the directory's time.

    Metrics do not: they are appended to. Neither does resuming, unless a process leaves its name.
    """
    if status is Status.RUNNING or (process is None and status is not Status.FINISHED):
        return False
    return time.time() - changed / 1e9 > _SETTLED


def with_progress(record: RunRecord, progress: RunProgress) -> RunRecord:
    """The record of a run that has gone on."""
    return replace(record, best=progress.best, last=progress.last, steps=progress.steps)
