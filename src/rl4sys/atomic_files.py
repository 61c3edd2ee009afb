"""Files that are wholly there or not at all, whatever is killed or unplugged meanwhile."""

from __future__ import annotations

import os
from pathlib import Path


def write_durably(path: Path, data: bytes) -> None:
    """Write a file and wait until it is on the disk. Not atomic: for files in a directory that nobody reads yet."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes) -> None:
    """Put new contents under a name in one step: readers see the old ones or the new ones."""
    aside = path.with_name(f".{path.name}.tmp")
    write_durably(aside, data)
    aside.replace(path)
    sync_directory(path.parent)


def replace_link(link: Path, target: str) -> None:
    """Let a symbolic link point elsewhere in one step."""
    aside = link.with_name(f".{link.name}.tmp")
    aside.unlink(missing_ok=True)
    aside.symlink_to(target)
    aside.replace(link)
    sync_directory(link.parent)


def publish_directory(aside: Path, final: Path) -> None:
    """Give a finished directory its final name in one step, and wait until that is on the disk."""
    sync_directory(aside)
    aside.rename(final)
    sync_directory(final.parent)


def sync_directory(path: Path) -> None:
    """Wait until the names within a directory are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
