"""The temporary directory of a trial that was sent to this machine."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from rl4sys.file_lock import FileLock

_KEPT = "kept"
"""A file that says that a directory stays, since it holds the output of a trial that failed."""


class WorkingDirectory:
    """A directory that is locked while a process of its trial lives. Making one removes those of killed trials."""

    def __init__(self) -> None:
        parent = _parent()
        # One at a time, so that a directory that is not locked yet is not taken for an abandoned one.
        with FileLock.acquire(parent):
            _remove_abandoned(parent)
            self.path = Path(tempfile.mkdtemp(dir=parent))
            self._lock = FileLock.acquire(self.path)

    @property
    def descriptor(self) -> int:
        """What holds the lock; a process that inherits it holds the lock, too."""
        return self._lock.descriptor

    def keep(self) -> None:
        """Leave it for the user to look into."""
        (self.path / _KEPT).touch()
        self._lock.release()

    def remove(self) -> None:
        """Remove it with all its files."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


def _parent() -> Path:
    """The directory of all of them, which is this user's alone."""
    parent = Path(tempfile.gettempdir()) / f"rl4sys-trials-{os.getuid()}"
    parent.mkdir(mode=0o700, exist_ok=True)
    if parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{parent} belongs to another user. Remove it, or set TMPDIR to a directory of your own.")
    return parent


def _remove_abandoned(parent: Path) -> None:
    for path in parent.iterdir():
        if not (path / _KEPT).exists() and (lock := FileLock.try_acquire(path)) is not None:
            with lock:
                shutil.rmtree(path, ignore_errors=True)
