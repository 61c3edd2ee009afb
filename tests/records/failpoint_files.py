"""Files that stop at named failpoints of a log, where a test may kill the process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rl4sys.records import committed_end
from rl4sys.records.files import File, Files, Lock

FAILPOINTS = (
    "before append",
    "during append",
    "after append",
    "before sync",
    "after sync",
    "before publish",
    "during publish",
    "after publish",
    "before header",
    "during header",
    "after header",
    "before rename",
    "after rename",
    "before directory sync",
    "after directory sync",
    "before truncate",
    "after truncate",
    "before prune",
    "after prune",
)


class FailpointFiles:
    """Files that call `reached` with the name of each failpoint; that call may never return.

    `during` comes after the first half of a write: what a kill leaves of a torn one.
    """

    def __init__(self, files: Files, reached: Callable[[str], None]) -> None:
        self._files = files
        self._reached = reached

    def names(self, directory: Path) -> list[str]:
        return self._files.names(directory)

    def make_directory(self, directory: Path) -> None:
        self._files.make_directory(directory)

    def create(self, path: Path) -> File:
        return _FailpointFile(self._files.create(path), "header", self._reached)

    def open(self, path: Path) -> File:
        what = "publish" if path.name == committed_end.NAME else "append"
        return _FailpointFile(self._files.open(path), what, self._reached)

    def open_to_read(self, path: Path) -> File:
        return self._files.open_to_read(path)

    def rename(self, source: Path, target: Path) -> None:
        self._reached("before rename")
        self._files.rename(source, target)
        self._reached("after rename")

    def remove(self, path: Path) -> None:
        self._reached("before prune")
        self._files.remove(path)
        self._reached("after prune")

    def sync_directory(self, directory: Path) -> None:
        self._reached("before directory sync")
        self._files.sync_directory(directory)
        self._reached("after directory sync")

    def lock(self, path: Path) -> Lock:
        return self._files.lock(path)


class _FailpointFile:
    def __init__(self, file: File, what: str, reached: Callable[[str], None]) -> None:
        self._file = file
        self._what = what
        self._reached = reached

    def size(self) -> int:
        return self._file.size()

    def read(self, offset: int, length: int) -> bytes:
        return self._file.read(offset, length)

    def write(self, offset: int, data: bytes) -> None:
        half = len(data) // 2
        # A new file begins with its header; what follows are records.
        what = "append" if self._what == "header" and offset > 0 else self._what
        self._reached(f"before {what}")
        self._file.write(offset, data[:half])
        self._reached(f"during {what}")
        self._file.write(offset + half, data[half:])
        self._reached(f"after {what}")

    def truncate(self, length: int) -> None:
        self._reached("before truncate")
        self._file.truncate(length)
        self._reached("after truncate")

    def sync(self) -> None:
        self._reached("before sync")
        self._file.sync()
        self._reached("after sync")

    def close(self) -> None:
        self._file.close()
