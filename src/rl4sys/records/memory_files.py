"""Files in memory: a log without a disk, for learners in threads and for notebooks."""

from __future__ import annotations

from pathlib import Path

from rl4sys.records.errors import LogInUse


class MemoryFile:
    """One file as an array of bytes, shared by all that have it open."""

    def __init__(self, contents: bytearray) -> None:
        self._contents = contents

    def size(self) -> int:
        return len(self._contents)

    def read(self, offset: int, length: int) -> bytes:
        return bytes(self._contents[offset : offset + length])

    def write(self, offset: int, data: bytes) -> None:
        self._contents[offset : offset + len(data)] = data

    def truncate(self, length: int) -> None:
        del self._contents[length:]

    def sync(self) -> None:
        """Nothing outlives the process, so there is nothing to wait for."""

    def close(self) -> None:
        """The contents stay with the name."""


class MemoryLock:
    """The right to write, as a name in a set."""

    def __init__(self, path: Path, taken: set[Path]) -> None:
        if path in taken:
            raise LogInUse(f"{path.parent} is open for writing elsewhere in this process. Close that writer first.")
        self._path, self._taken = path, taken
        taken.add(path)

    def release(self) -> None:
        self._taken.discard(self._path)


class MemoryFiles:
    """A file system in memory; a reader needs the same object as its writer."""

    def __init__(self) -> None:
        self._files: dict[Path, bytearray] = {}
        self._locks: set[Path] = set()

    def names(self, directory: Path) -> list[str]:
        return [path.name for path in list(self._files) if path.parent == directory]

    def make_directory(self, directory: Path) -> None:
        """Do nothing: directories are only prefixes of names here."""

    def create(self, path: Path) -> MemoryFile:
        self._files[path] = bytearray()
        return MemoryFile(self._files[path])

    def open(self, path: Path) -> MemoryFile:
        if path not in self._files:
            raise FileNotFoundError(f"{path} does not exist in memory.")
        return MemoryFile(self._files[path])

    def open_to_read(self, path: Path) -> MemoryFile:
        return self.open(path)

    def rename(self, source: Path, target: Path) -> None:
        self._files[target] = self._files.pop(source)

    def remove(self, path: Path) -> None:
        del self._files[path]

    def sync_directory(self, directory: Path) -> None:
        """Nothing outlives the process, so there is nothing to wait for."""

    def lock(self, path: Path) -> MemoryLock:
        return MemoryLock(path, self._locks)
