"""The files of a backup while it is written: each synced and hashed."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from rl4sys.atomic_files import make_directory, sync_directory
from rl4sys.failpoints import failpoint
from rl4sys.server.data_directory.backup_manifest import FileChecks


class BackupFiles:
    """Writes files under one directory, readable by their owner only. Names are relative, with slashes."""

    def __init__(self, directory: Path, progress: Callable[[int], None]) -> None:
        """`progress` is called with the number of bytes after each part that is written."""
        self._directory, self._progress = directory, progress
        self.written: dict[str, FileChecks] = {}

    def add(self, name: str, chunks: Iterable[bytes]) -> FileChecks:
        """Write a file from its parts, in place of any earlier one."""
        path = self._directory / name
        make_directory(path.parent, mode=0o700)
        digest, size = hashlib.sha256(), 0
        failpoint("before backup file")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                self._progress(len(chunk))
            file.flush()
            os.fsync(file.fileno())
        failpoint("after backup file")
        self.written[name] = FileChecks(size, digest.hexdigest())
        return self.written[name]

    def remove(self, name: str) -> None:
        """Forget a file, or everything under a directory."""
        path = self._directory / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        for each in [each for each in self.written if each == name or each.startswith(f"{name}/")]:
            del self.written[each]

    def sync(self) -> None:
        """Wait until the names of all files are on the disk."""
        for path, _, _ in os.walk(self._directory, topdown=False):
            sync_directory(Path(path))
