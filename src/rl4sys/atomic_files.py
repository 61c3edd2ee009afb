"""Files and directories that are complete or absent after any crash or power cut."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rl4sys.failpoints import failpoint


def write_durably(path: Path, data: bytes) -> None:
    """Write a file and sync it. Not atomic: for files in a directory that is not published yet."""
    failpoint("before file write")
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        failpoint("before file sync")
        os.fsync(file.fileno())
    failpoint("after file sync")


def replace_file(path: Path, data: bytes) -> None:
    """Replace the contents of a file atomically: readers see the old ones or the new ones."""
    aside = path.with_name(f".{path.name}.tmp")
    try:
        write_durably(aside, data)
        failpoint("before file rename")
        aside.replace(path)
        failpoint("after file rename")
    except BaseException:
        # An incomplete file would only take space, which may be what is missing.
        aside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def replace_link(link: Path, target: str) -> None:
    """Change the target of a symbolic link atomically. Not synced: after a power cut it may have the old target."""
    aside = link.with_name(f".{link.name}.tmp")
    aside.unlink(missing_ok=True)
    aside.symlink_to(target)
    if link.is_dir() and not link.is_symlink():
        # A tool that follows links has copied the directory.
        shutil.rmtree(link)
    failpoint("before link")
    aside.replace(link)
    failpoint("after link")


def publish_directory(aside: Path, final: Path) -> None:
    """Give a finished directory its final name, and sync that.

    A directory that already has the name makes way only now, and takes its place again if the new one cannot.
    """
    sync_directory(aside)
    old = final.with_name(f".{final.name}.old.tmp")
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        final.rename(old)
    failpoint("before directory rename")
    try:
        aside.rename(final)
        failpoint("after directory rename")
    except OSError:
        if old.exists():
            old.rename(final)
        raise
    sync_directory(final.parent)
    shutil.rmtree(old, ignore_errors=True)


def make_directory(path: Path, mode: int = 0o777) -> None:
    """Create a directory with its parents, each synced; one that exists is left unchanged."""
    if path.is_dir():
        return
    make_directory(path.parent)
    path.mkdir(mode, exist_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Sync the names within a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
