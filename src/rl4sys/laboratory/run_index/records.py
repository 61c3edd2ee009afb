"""The record of a run in the index, and how it is read from the run directory, the source of truth."""

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
    ERROR,
    MANIFEST,
    PRUNED,
    RunProgress,
    is_resumable,
    read_config,
    read_json,
    read_progress,
    read_result,
)

_SETTLED = 2.0
"""Seconds after which a modification time is final: two changes may share one tick of the clock."""


class Status(StrEnum):
    """The status of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    """Stopped or killed; it can be resumed."""
    PRUNED = "pruned"
    """Ended by its study, because others did better."""
    FAILED = "failed"


UNFINISHED = (Status.INTERRUPTED, Status.FAILED)
"""The statuses of a run that can be resumed."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One row of the index. All of it can be read again from the run directory."""

    id: str
    """The run directory, relative to the directory of the index."""
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
    """Hash of all settings that affect learning except the seed: equal for runs that differ in their seed only."""
    status: Status
    cause: str | None
    """Why a failed run failed."""
    best: float | None
    last: float | None
    steps: int
    total: int
    """Steps that the run should reach."""
    host: str | None
    heard: float | None
    """When a process on another machine last wrote that it is alive, in seconds since 1970."""
    stamp: int
    """Modification time of the directory in nanoseconds; 0 if it must be read again in any case."""
    resumable: bool
    """Whether there is a checkpoint to resume from."""
    parent: str | None
    """The run, checkpoint or policy that its first weights come from, with the step."""
    inexact: int
    """How often it was resumed with changes that may affect its bits."""

    def json_values(self, root: Path) -> dict[str, Any]:
        """The record for `--json`: time as text, with the directory and the resume command."""
        return self.own_values() | {"directory": f"{root}/{self.id}", "resume": self.resume_command(root)}

    def own_values(self) -> dict[str, Any]:
        """The part of the record that does not depend on the working directory."""
        values = {name: getattr(self, name) for name in COLUMNS if name != "stamp"}
        created = datetime.datetime.fromtimestamp(self.created, datetime.UTC)
        return values | {"created": created.isoformat(timespec="seconds")}

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is training on another machine."""
        return self.status is Status.RUNNING and self.heard is not None

    @property
    def can_resume(self) -> bool:
        """Whether it is unfinished and has a checkpoint."""
        return self.resumable and self.status in UNFINISHED

    def resume_command(self, root: Path) -> str | None:
        """The command that resumes an unfinished run, if it has a checkpoint."""
        return resume_command(f"{root}/{self.id}") if self.can_resume else None


COLUMNS = tuple(field.name for field in fields(RunRecord))


def resume_command(directory: str) -> str:
    """The command that resumes the run in a directory."""
    return f"rl4sys resume {directory}"


def read_record(root: Path, id_: str) -> RunRecord:
    """Read the record of a run from its directory. A run that cannot be read has failed, and the cause says why."""
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
        cause=_cause(run, process) if status is Status.FAILED else None,
        best=progress.best,
        last=progress.last,
        steps=progress.steps,
        total=config["training"]["total_timesteps"],
        host=process.host if process is not None else None,
        heard=process.heard if process is not None and not process.is_here else None,
        stamp=changed if _is_settled(status, process, changed) else 0,
        resumable=is_resumable(run),
        parent=_parent(manifest),
        inexact=len(manifest.get("inexact", ())),
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
        heard=None,
        # Read again each time: a repair of the file may not change the modification time of the directory.
        stamp=0,
        resumable=False,
        parent=None,
        inexact=0,
    )


def _parent(manifest: Mapping[str, Any]) -> str | None:
    parent = manifest.get("parent")
    return None if parent is None else f"{parent['source']} at step {parent['step']}"


def _labels(run: Path) -> Labels:
    """Tags and notes; none if the file is damaged, which `show` reports."""
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
    if (run / PRUNED).is_file():
        return Status.PRUNED
    return Status.FAILED if _cause(run, process) is not None else Status.INTERRUPTED


def _cause(run: Path, process: TrainingProcess | None) -> str | None:
    """Why a run failed: as its process noted it, or from its crash report if it failed before training began."""
    if process is not None:
        return process.cause
    try:
        lines = (run / ERROR).read_text(encoding="utf-8").strip().splitlines()
    except OSError:
        return None
    return lines[-1] if lines else None


def _is_settled(status: Status, process: TrainingProcess | None, changed: int) -> bool:
    """Whether every later change of the run will also change the modification time of its directory.

    Appending metrics does not, nor does resuming unless `process.json` is written.
    """
    if status is Status.RUNNING or (process is None and status is not Status.FINISHED):
        return False
    return time.time() - changed / 1e9 > _SETTLED


def with_progress(record: RunRecord, progress: RunProgress) -> RunRecord:
    """The record with newer progress."""
    return replace(record, best=progress.best, last=progress.last, steps=progress.steps)
