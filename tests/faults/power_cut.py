"""What a power cut leaves of real files: only synced data, observed through `os.fsync`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CHANGES: list[tuple[Any, str]] = [
    (os, "fsync"),
    (Path, "open"),
    (Path, "mkdir"),
    (Path, "rename"),
    (Path, "replace"),
    (Path, "symlink_to"),
    (Path, "unlink"),
]


class Watched:
    """A directory in which, after every change, the state after a power cut is checked.

    Contents count once their file was synced, names once their directory was. With `eager` names reach the disk at once
    and contents still do not: file systems may do either.
    """

    def __init__(self, root: Path, eager: bool, look: Callable[[Path], None]) -> None:
        self.root, self.eager, self.looks = root, eager, 0
        self._look = look
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, str]]] = {self._inode(root): {}}
        self._looking = False

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        for owner, name in CHANGES:
            patch.setattr(owner, name, self._followed(getattr(owner, name), is_sync=name == "fsync"))

    def _followed(self, real: Callable[..., Any], *, is_sync: bool) -> Callable[..., Any]:
        def operate(*arguments: Any, **options: Any) -> Any:
            result = real(*arguments, **options)
            if not self._looking:
                self._looking = True
                try:
                    if is_sync:
                        self._synced(arguments[0])
                    self._cut()
                finally:
                    self._looking = False
            return result

        return operate

    def _synced(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            self._names[self._inode(path)] = self._names_now(path)
        else:
            self._contents[self._inode(path)] = path.read_bytes()

    def _names_now(self, directory: Path) -> dict[str, tuple[int, str]]:
        return {
            path.name: (self._inode(path), os.readlink(path) if path.is_symlink() else "")
            for path in directory.iterdir()
        }

    def _cut(self) -> None:
        """Write the state after a power cut to a directory, and check it."""
        self.looks += 1
        left = self.root.with_name(f"{self.root.name} after a cut")
        shutil.rmtree(left, ignore_errors=True)
        left.mkdir()
        self._restore(self._inode(self.root), left)
        self._look(left)

    def _restore(self, inode: int, left: Path) -> None:
        by_inode = {self._inode(path): path for path in self.root.rglob("*")} | {self._inode(self.root): self.root}
        live = by_inode.get(inode)
        names = (
            self._names_now(live) if self.eager and live is not None and live.is_dir() else self._names.get(inode, {})
        )
        for name, (child, link) in names.items():
            path = by_inode.get(child)
            if link:
                (left / name).symlink_to(link)
            elif child in self._names or (path is not None and path.is_dir()):
                (left / name).mkdir()
                self._restore(child, left / name)
            else:
                (left / name).write_bytes(self._contents.get(child, b""))

    @staticmethod
    def _inode(path: Path) -> int:
        return path.lstat().st_ino
