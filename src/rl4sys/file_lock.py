"""Advisory locks between processes, on a file or a directory (`flock`)."""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path
from typing import Self


class FileLock:
    """A held lock. It ends with `release`, with its `with` block, or with the process, even after kill -9.

    Two locks on one path exclude each other within a process, too. A forked child shares the lock of its parent, unless
    the lock is `private`.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        """The open file: readable, and writable if it was locked with `create`."""

    def private(self) -> Self:
        """Keep this lock from forked children, which would hold it for as long as they run."""
        _private.add(self)
        return self

    @classmethod
    def acquire(cls, path: Path, *, shared: bool = False, create: int | None = None) -> Self:
        """Wait for the lock. `create` is the mode of a file that is made if missing; without it the path must exist."""
        return cls(_locked(path, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, create))

    @classmethod
    def try_acquire(cls, path: Path, *, shared: bool = False, create: int | None = None) -> Self | None:
        """The lock, or None at once while another holder excludes it."""
        try:
            return cls(_locked(path, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB, create))
        except BlockingIOError:
            return None

    def release(self) -> None:
        """Let the next holder in."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _locked(path: Path, operation: int, create: int | None) -> int:
    # Directories, and files of other users, can be locked but not opened for writing.
    descriptor = os.open(path, os.O_RDONLY) if create is None else os.open(path, os.O_RDWR | os.O_CREAT, create)
    try:
        fcntl.flock(descriptor, operation)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


_private: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _release_private() -> None:
    """In a child: its copies of the descriptors do not unlock, but would keep locked what the parent releases."""
    for lock in list(_private):
        lock.release()


os.register_at_fork(after_in_child=_release_private)
