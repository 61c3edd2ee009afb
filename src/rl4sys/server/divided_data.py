"""The data directory of a server with several processes: one directory each, and learners where they belong."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from rl4sys.atomic_files import make_directory, sync_directory
from rl4sys.file_lock import FileLock
from rl4sys.server.options import ImpossibleSetup
from rl4sys.wire.port_range import process_of

_LEARNERS = "learners"


def process_directory(data: Path, number: int, count: int) -> Path:
    """The data directory of one process; that of the only one is the whole."""
    return data if count == 1 else data / f"process-{number}"


def divide(data: Path, count: int) -> None:
    """Move each learner to the process that it belongs to. Raises `ImpossibleSetup` while the data are served."""
    make_directory(data, mode=0o700)
    directories = [data, *_processes(data)]
    with ExitStack() as locks:
        for directory in directories:
            lock = FileLock.try_acquire(directory / "lock", create=0o600)
            if lock is None:
                raise ImpossibleSetup(f"{directory} is served by another process. End that one first.")
            locks.enter_context(lock)
        for directory in directories:
            for learner in sorted((directory / _LEARNERS).glob("*")):
                place = process_directory(data, process_of(learner.name, count), count) / _LEARNERS / learner.name
                if place != learner:
                    _move(learner, place)


def require_undivided(data: Path) -> None:
    """Raise `ImpossibleSetup` if learners are in directories of several processes, where one alone would miss them."""
    held = [directory for directory in _processes(data) if any((directory / _LEARNERS).glob("*"))]
    if held:
        raise ImpossibleSetup(
            f"{data} was served by several processes and has learners in {held[0].name}. Give --processes with a "
            "number; 1 brings them all back together."
        )


def _processes(data: Path) -> list[Path]:
    return sorted(path for path in data.glob("process-*") if path.is_dir())


def _move(learner: Path, place: Path) -> None:
    """Rename a learner's directory; a crash leaves it in one of the two places."""
    if place.exists():
        raise ImpossibleSetup(
            f"{learner.name} is both in {learner.parent} and in {place.parent}. Move one of them away."
        )
    make_directory(place.parent.parent, mode=0o700)
    make_directory(place.parent)
    learner.rename(place)
    sync_directory(place.parent)
    sync_directory(learner.parent)
