"""Makes room: what takes space is removed from old runs, what tells how they went stays."""

from __future__ import annotations

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

BULKY = (CHECKPOINTS, REPLAY, POLICIES, TENSORBOARD, VIDEOS, WANDB, MLFLOW)
"""What is removed. Configs, manifests, results, metrics, labels and pictures stay, and so does what is not known."""
KEEP = "keep"
"""A run with this tag is never cleaned."""


@dataclass(frozen=True, slots=True)
class Waste:
    """What can be removed from one run."""

    record: RunRecord
    directory: Path
    parts: tuple[str, ...]
    size: int
    """Bytes."""


def find_waste(root: Path, records: Sequence[RunRecord], keep_best: int, keep_recent: int) -> list[Waste]:
    """What to remove so that the best runs of each environment, the newest runs and the tagged ones stay whole."""
    kept = {record.id for record in records if record.status is Status.RUNNING or KEEP in record.tags}
    kept |= {record.id for record in sorted(records, key=lambda record: -record.created)[:keep_recent]}
    kept |= {record.id for record in _best(records, keep_best)}
    found = (_waste(root / record.id, record) for record in records if record.id not in kept)
    return [waste for waste in found if waste.parts]


class Busy(RuntimeError):
    """A process trains the run by now."""


def remove(waste: Waste) -> None:
    """Remove it, unless a process trains the run by now, which is then left alone."""
    with held(waste.directory) as ours:
        for part in waste.parts if ours else ():
            if part == CHECKPOINTS:
                _hollow(waste.directory / part)
            else:
                shutil.rmtree(waste.directory / part)
    if not ours:
        raise Busy("it is being trained by now")


def _hollow(checkpoints: Path) -> None:
    """Leave the newest checkpoint's empty directory: resuming must fail, and not begin anew over the old metrics."""
    places = sorted(path for path in checkpoints.iterdir() if path.is_dir() and not path.is_symlink())
    for place in places:
        # First what makes it a checkpoint: whatever ends this process, nothing half looks whole.
        (place / MANIFEST).unlink(missing_ok=True)
        for path in place.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if place != places[-1]:
            place.rmdir()
    for link in checkpoints.iterdir():
        if link.is_symlink():
            link.unlink()


def _best(records: Sequence[RunRecord], count: int) -> Iterable[RunRecord]:
    """The best runs of each environment: returns of different tasks say nothing about each other."""
    for environment in {record.environment for record in records}:
        scored = [(record.best, record) for record in records if record.environment == environment]
        ranked = [(best, record.created, record) for best, record in scored if best is not None]
        yield from (record for *_, record in sorted(ranked, key=lambda entry: entry[:2], reverse=True)[:count])


def _waste(directory: Path, record: RunRecord) -> Waste:
    parts = tuple(part for part in BULKY if any(path.is_file() for path in (directory / part).rglob("*")))
    return Waste(record, directory, parts, sum(size_of(directory / part) for part in parts))
