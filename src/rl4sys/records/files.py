"""The file operations that records need, as a protocol: the real disk here, simulated failures in tests."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Protocol

from rl4sys.file_lock import FileLock
from rl4sys.records.errors import LogInUse


class File(Protocol):
    """One open file, addressed by byte offsets."""

    def size(self) -> int:
        """Its present length in bytes."""

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; fewer only at the end of the file."""

    def write(self, offset: int, data: bytes) -> None:
        """Pass all of `data` to the operating system. After a failure any part of it may have been written."""

    def truncate(self, length: int) -> None:
        """Remove everything from `length` on."""

    def sync(self) -> None:
        """Wait until contents and length are on the disk."""

    def close(self) -> None:
        """Close the file without syncing it."""


class Lock(Protocol):
    """The right to write a log; it ends with `release` or with the process."""

    def release(self) -> None:
        """Allow another writer."""


class Files(Protocol):
    """A file system."""

    def names(self, directory: Path) -> list[str]:
        """The names in a directory, in any order."""

    def make_directory(self, directory: Path) -> None:
        """Create a directory, durably, with its parents; one that exists is left as it is."""

    def create(self, path: Path) -> File:
        """An empty file to read and write, in place of any older one."""

    def open(self, path: Path) -> File:
        """An existing file to read and write."""

    def open_to_read(self, path: Path) -> File:
        """An existing file to read."""

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file atomically, replacing one that had the name."""

    def remove(self, path: Path) -> None:
        """Remove a file; readers that have it open can still read it."""

    def sync_directory(self, directory: Path) -> None:
        """Wait until the names in a directory are on the disk."""

    def lock(self, path: Path) -> Lock:
        """Become the only writer, or raise `LogInUse`."""


class DiskFile:
    """A file on the real disk."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, offset)

    def write(self, offset: int, data: bytes) -> None:
        written = os.pwrite(self._descriptor, data, offset)
        while written < len(data):
            # A disk that fills up writes a part first, and reports the error only for the rest.
            written += os.pwrite(self._descriptor, memoryview(data)[written:], offset + written)

    def truncate(self, length: int) -> None:
        os.ftruncate(self._descriptor, length)

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class DiskFiles:
    """Files on the real disk, readable by their owner only."""

    def names(self, directory: Path) -> list[str]:
        return os.listdir(directory)

    def make_directory(self, directory: Path) -> None:
        if directory.is_dir():
            return
        self.make_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
        self.sync_directory(directory.parent)

    def create(self, path: Path) -> DiskFile:
        return DiskFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))

    def open(self, path: Path) -> DiskFile:
        return DiskFile(os.open(path, os.O_RDWR))

    def open_to_read(self, path: Path) -> DiskFile:
        return DiskFile(os.open(path, os.O_RDONLY))

    def rename(self, source: Path, target: Path) -> None:
        source.replace(target)

    def remove(self, path: Path) -> None:
        path.unlink()

    def sync_directory(self, directory: Path) -> None:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: Path) -> FileLock:
        lock = FileLock.try_acquire(path, create=0o600)
        if lock is None:
            raise LogInUse(
                f"{path.parent} is open for writing elsewhere. Close that writer, or choose another directory."
            )
        return lock.private()


class LinkedDiskFile(DiskFile):
    """A file whose removal makes writing to it an error: what is written then is gone once the file is closed."""

    def write(self, offset: int, data: bytes) -> None:
        super().write(offset, data)
        if os.fstat(self._descriptor).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "the file was removed while it was written")


class LinkedDiskFiles(DiskFiles):
    """Files on the real disk, for a writer that promises to keep what it has written."""

    def create(self, path: Path) -> LinkedDiskFile:
        return LinkedDiskFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))

    def open(self, path: Path) -> LinkedDiskFile:
        return LinkedDiskFile(os.open(path, os.O_RDWR))
