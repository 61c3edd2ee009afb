"""Restoring a backup: verified first, written aside within the data directory, and given its names at the end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rl4sys.atomic_files import make_directory, sync_directory
from rl4sys.failpoints import failpoint
from rl4sys.file_lock import FileLock
from rl4sys.server.data_directory.backup_files import BackupFiles
from rl4sys.server.data_directory.backup_manifest import BackupManifest, read_checked
from rl4sys.server.data_directory.directory_check import DataInUse
from rl4sys.server.learners.interrupted_restore import RESTORING
from rl4sys.server.learners.lineage import Lineage

_PARTS = ("audit.jsonl", "learners")
"""The learners last: with them the restore is complete."""


class RestoreRefused(ValueError):
    """A backup cannot be restored there."""


def verify_backup(backup: Path, progress: Callable[[int], None] = lambda size: None) -> BackupManifest:
    """Read every byte of a backup, or raise `BackupDamaged` with the file that is not what was written."""
    manifest = BackupManifest.read(backup)
    for name, checks in manifest.files.items():
        for chunk in read_checked(backup / "data" / name, checks):
            progress(len(chunk))
    return manifest


def restore(
    backup: Path,
    data: Path,
    now: float,
    *,
    replace: bool = False,
    keeps_lineages: bool = False,
    progress: Callable[[int], None] = lambda size: None,
) -> tuple[BackupManifest, Path | None]:
    """Restore a backup into a data directory; returns its manifest, and where the data are that it replaced.

    Each learner begins a new lineage: the old one may have had versions after the backup, whose numbers would be used
    again. With `keeps_lineages` it continues, which is right only if nothing was published after the backup.

    No server can use the directory meanwhile, nor after a kill before the end: it refuses to, and restoring again
    begins from the start.
    """
    manifest = verify_backup(backup, progress)
    make_directory(data, mode=0o700)
    lock = FileLock.try_acquire(data / "lock", create=0o600)
    if lock is None:
        raise DataInUse(f"{data} is used by a server. End that one first.")
    with lock:
        aside = data / RESTORING
        held = [name for name in os.listdir(data) if name not in ("lock", "deleted", RESTORING)]
        if held and not replace:
            raise RestoreRefused(
                f"{data} is not empty: it has {', '.join(sorted(held)[:3])}. Choose another directory; or give "
                f"--replace, which moves its learners to {data / 'deleted'} first."
            )
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(mode=0o700)
        sync_directory(data)
        files = BackupFiles(aside, progress)
        make_directory(aside / "learners", mode=0o700)
        for name, checks in manifest.files.items():
            files.add(name, read_checked(backup / "data" / name, checks))
        if not keeps_lineages:
            for learner in (aside / "learners").iterdir():
                Lineage.read(learner).branch().write(learner)
        files.sync()
        failpoint("before restored names")
        replaced = _move_aside(data, now)
        failpoint("between restored names")
        for part in _PARTS:
            if (aside / part).exists():
                (aside / part).rename(data / part)
        sync_directory(data)
        failpoint("after restored names")
        shutil.rmtree(aside)
        sync_directory(data)
    return manifest, replaced


def _move_aside(data: Path, now: float) -> Path | None:
    present = [part for part in _PARTS if (data / part).exists()]
    if not present:
        return None
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
    place = data / "deleted" / f"replaced-{stamp}"
    make_directory(place.parent, mode=0o700)
    make_directory(place, mode=0o700)
    for part in present:
        (data / part).rename(place / part)
    sync_directory(place)
    sync_directory(data)
    return place
