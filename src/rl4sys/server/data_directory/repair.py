"""Repairs of a data directory that no server is using. Nothing is deleted: damaged files are moved to `deleted`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rl4sys.atomic_files import make_directory, sync_directory
from rl4sys.records import RecordLog
from rl4sys.records.files import DiskFiles
from rl4sys.records.frames import encode_header
from rl4sys.server.data_directory.directory_check import DirectoryCheck
from rl4sys.server.data_directory.learner_check import LearnerCheck
from rl4sys.server.data_directory.log_scan import LogScan
from rl4sys.server.data_directory.rebuilt_learner import Beginning, plan_rebuilding, rebuild


@dataclass(frozen=True, slots=True)
class Repair:
    """One thing to do."""

    learner: str
    what: str
    lost: int
    """Acknowledged records that are lost; it does not change by waiting."""
    carry_out: Callable[[], Path | None]
    """Do it; returns where the damaged files are now."""


def plan_repairs(check: DirectoryCheck, beginning: Beginning | None, now: float) -> list[Repair]:
    """What can be repaired. Learners that an operator has to decide about are among it only with a decision."""
    repairs: list[Repair] = []
    if check.data.stat().st_mode & 0o077:
        repairs.append(Repair("", f"Let only the owner use {check.data}.", 0, lambda: _restrict(check.data)))
    for learner in check.learners:
        aside = _Aside(learner.directory, now)
        if not learner.is_held:
            repairs += _harmless(learner, aside)
        elif beginning is not None:
            plan = plan_rebuilding(learner, beginning)
            repairs.append(Repair(learner.directory.name, plan.describe(), plan.lost, partial(rebuild, plan, now)))
    return repairs


def undecided(check: DirectoryCheck) -> list[LearnerCheck]:
    """Learners that an operator has to decide about."""
    return [learner for learner in check.learners if learner.is_held]


class _Aside:
    """Where the damaged files of a learner go."""

    def __init__(self, directory: Path, now: float) -> None:
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
        self._directory = directory
        self.place = directory.parent.parent / "deleted" / f"{directory.name}-damaged-{stamp}"

    def move(self, path: Path) -> Path:
        """Move a file or directory there."""
        target = self._target(path)
        path.rename(target)
        sync_directory(path.parent)
        sync_directory(target.parent)
        return self.place

    def copy(self, path: Path) -> Path:
        """Keep a copy of a file there, before it is changed."""
        target = self._target(path)
        shutil.copyfile(path, target)
        with target.open("rb") as file:
            os.fsync(file.fileno())
        sync_directory(target.parent)
        return self.place

    def _target(self, path: Path) -> Path:
        target = self.place / path.relative_to(self._directory)
        make_directory(self.place.parent, mode=0o700)
        make_directory(target.parent, mode=0o700)
        return target


def _harmless(learner: LearnerCheck, aside: _Aside) -> list[Repair]:
    """Repairs that lose nothing."""
    name, log = learner.directory.name, learner.log
    repairs = [
        Repair(
            name,
            f"Move the damaged checkpoint of {step} records aside: an older state and the log lead to its weights.",
            0,
            partial(aside.move, learner.directory / "checkpoints" / f"{step:012d}"),
        )
        for step in learner.damaged
        if learner.sound or (log is not None and log.first == 0)
    ]
    if learner.is_stored_damaged and log is not None and log.first == 0:
        path = learner.directory / "stored.json"
        repairs.append(Repair(name, f"Move {path} aside; the log has its contents.", 0, lambda: aside.move(path)))
    if log is not None:
        repairs += [
            Repair(name, f"Write the header of {path} again.", 0, partial(_write_header, path, aside))
            for path, _ in log.header_faults
        ]
        if log.torn is not None or not log.has_ends:
            what = f"Cut what was written in part and never acknowledged from {log.directory}, and keep a copy."
            repairs.append(Repair(name, what, 0, lambda: _settle(log, learner.covered, aside)))
    return repairs


def _restrict(data: Path) -> None:
    data.chmod(0o700)


def _write_header(path: Path, aside: _Aside) -> Path:
    kept = aside.copy(path)
    file = DiskFiles().open(path)
    try:
        file.write(0, encode_header(int(path.stem)))
        file.sync()
    finally:
        file.close()
    return kept


def _settle(log: LogScan, covered: int, aside: _Aside) -> Path | None:
    """Open the log as the server does, which cuts a torn tail and publishes the end."""
    kept = aside.copy(log.torn[0]) if log.torn is not None else None
    RecordLog(log.directory, covered=covered).close()
    return kept
