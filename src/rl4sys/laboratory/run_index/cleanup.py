"""Frees disk space: removes the large files of old runs, and keeps their configs, metrics and results."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rl4sys.laboratory.run_index.records import RunRecord, Status
from rl4sys.laboratory.run_index.training_process import held
from rl4sys.run_files import (
    CHECKPOINTS,
    MANIFEST,
    MLFLOW,
    POLICIES,
    REPLAY,
    TENSORBOARD,
    VIDEOS,
    WANDB,
    size_of,
)

REMOVABLE = (CHECKPOINTS, REPLAY, POLICIES, TENSORBOARD, VIDEOS, WANDB, MLFLOW)
"""What is removed. Everything else stays: configs, manifests, results, metrics, labels, plots and unknown files."""
KEEP = "keep"
"""A run with this tag is never cleaned."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What can be removed from one run."""

    record: RunRecord
    directory: Path
    parts: tuple[str, ...]
    size: int
    """Bytes."""

    @property
    def ends_resuming(self) -> bool:
        """Whether the run is unfinished, and could no longer be resumed."""
        return self.record.can_resume and CHECKPOINTS in self.parts


class WrongAge(ValueError):
    """Neither a number of runs nor one of days."""


@dataclass(frozen=True, slots=True)
class Recent:
    """Which runs are recent: the newest `count` of them, or those that were created after a time."""

    count: int = 0
    since: float = math.inf
    """Seconds since 1970."""

    @classmethod
    def parse(cls, text: str, now: float) -> Recent:
        """`30` means the newest 30 runs, `30d` those of the last 30 days."""
        match = re.fullmatch(r"(\d+)(d?)", text.strip())
        if match is None:
            raise WrongAge(f"--keep-recent {text}: expected a number of runs such as 30, or of days such as 30d.")
        number = int(match[1])
        return cls(since=now - number * 86_400) if match[2] else cls(number)

    def among(self, records: Sequence[RunRecord]) -> list[RunRecord]:
        """The recent ones of some runs."""
        newest = sorted(records, key=lambda record: -record.created)[: self.count]
        return newest + [record for record in records if record.created >= self.since]


def plan_removals(root: Path, records: Sequence[RunRecord], keep_best: int, keep_recent: Recent) -> list[Removal]:
    """What can be removed if the best runs of each environment, the newest runs and the tagged ones stay complete."""
    kept = {record.id for record in records if record.status is Status.RUNNING or KEEP in record.tags}
    kept |= {record.id for record in keep_recent.among(records)}
    kept |= {record.id for record in _best(records, keep_best)}
    found = (_removal(root / record.id, record) for record in records if record.id not in kept)
    return [removal for removal in found if removal.parts]


class RunInTraining(RuntimeError):
    """A process trains the run now."""


def remove(removal: Removal) -> None:
    """Carry out a removal, unless a process has started to train the run."""
    with held(removal.directory) as ours:
        for part in removal.parts if ours else ():
            if part == CHECKPOINTS:
                _empty(removal.directory / part)
            else:
                shutil.rmtree(removal.directory / part)
    if not ours:
        raise RunInTraining("it is being trained")


def _empty(checkpoints: Path) -> None:
    """Remove all checkpoints but the empty directory of the newest: resuming must fail, and not start over."""
    places = sorted(path for path in checkpoints.iterdir() if path.is_dir() and not path.is_symlink())
    for place in places:
        # The manifest first: if this process is killed, no incomplete checkpoint looks complete.
        (place / MANIFEST).unlink(missing_ok=True)
        for path in place.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if place != places[-1]:
            place.rmdir()
    for link in checkpoints.iterdir():
        if link.is_symlink():
            link.unlink()


def _best(records: Sequence[RunRecord], count: int) -> Iterable[RunRecord]:
    """The best runs of each environment: returns of different environments cannot be compared."""
    for environment in {record.environment for record in records}:
        scored = [(record.best, record) for record in records if record.environment == environment]
        ranked = [(best, record.created, record) for best, record in scored if best is not None]
        yield from (record for *_, record in sorted(ranked, key=lambda entry: entry[:2], reverse=True)[:count])


def _removal(directory: Path, record: RunRecord) -> Removal:
    parts = tuple(part for part in REMOVABLE if any(path.is_file() for path in (directory / part).rglob("*")))
    return Removal(record, directory, parts, sum(size_of(directory / part) for part in parts))
