"""Hot backups of a data directory: written aside, with a manifest last, and then given their name."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

from rl4sys.atomic_files import make_directory, publish_directory, sync_directory
from rl4sys.file_lock import FileLock
from rl4sys.server.data_directory.backup_files import BackupFiles
from rl4sys.server.data_directory.backup_manifest import BackedUpLearner, BackupManifest
from rl4sys.server.data_directory.directory_check import learner_directories, require_data
from rl4sys.server.data_directory.learner_copy import LearnerDamaged, LearnerGone, copy_learner
from rl4sys.server.learners.learner_setup import is_learner
from rl4sys.version import __version__


class BackupRefused(ValueError):
    """A backup cannot be written there."""


def back_up(
    data: Path, target: Path, now: float, progress: Callable[[int], None] = lambda size: None
) -> BackupManifest:
    """Copy a data directory, which a server may be using, into the new directory `target`.

    Learners that are damaged are left out; the manifest says which. A kill leaves only `.NAME.tmp` beside the target,
    which the next backup to the same target removes.
    """
    require_data(data)
    if target.exists():
        raise BackupRefused(f"{target} exists. Choose another name, such as one with the date: a backup never changes.")
    if data.resolve() in target.resolve().parents:
        raise BackupRefused(f"{target} is within {data}. Write the backup elsewhere, best on another disk.")
    make_directory(target.parent)
    aside = target.with_name(f".{target.name}.tmp")
    aside.mkdir(mode=0o700, exist_ok=True)
    lock = FileLock.try_acquire(aside)
    if lock is None:
        raise BackupRefused(f"Another backup is being written to {target}. Wait for it, or choose another name.")
    with lock:
        for remains in list(aside.iterdir()):
            shutil.rmtree(remains) if remains.is_dir() else remains.unlink()
        try:
            manifest = _fill(aside, data, now, progress)
        except Exception:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        publish_directory(aside, target)
    return manifest


def _fill(aside: Path, data: Path, now: float, progress: Callable[[int], None]) -> BackupManifest:
    _allow_many_files()
    files = BackupFiles(aside / "data", progress)
    learners: dict[str, BackedUpLearner] = {}
    left_out: dict[str, str] = {}
    make_directory(aside / "data" / "learners", mode=0o700)
    for directory in learner_directories(data):
        try:
            if is_learner(directory):
                learners[directory.name] = copy_learner(directory, files)
            elif (directory / "log").is_dir():
                left_out[directory.name] = "Its setup.json is missing."
        except LearnerDamaged as error:
            left_out[directory.name] = str(error)
        except LearnerGone:
            continue
    if (data / "audit.jsonl").exists():
        # The last line may be being written.
        lines = (data / "audit.jsonl").read_bytes()
        files.add("audit.jsonl", [lines[: lines.rfind(b"\n") + 1]])
    files.sync()
    manifest = BackupManifest(__version__, now, learners, left_out, files.written)
    manifest.write(aside)
    sync_directory(aside)
    return manifest


def data_bytes(data: Path) -> int:
    """About how many bytes a backup takes."""
    total = 0
    for place, _, names in os.walk(data / "learners"):
        for name in names if Path(place).name != "scratch" else ():
            # The server may have removed it meanwhile.
            with contextlib.suppress(FileNotFoundError):
                total += (Path(place) / name).stat().st_size
    return total


def _allow_many_files() -> None:
    """A replay buffer consists of many files, which are all open while a learner is copied."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
