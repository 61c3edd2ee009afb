"""Watches the disk of a server: space that runs short, and data that were removed under the live server."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

_log = logging.getLogger(__name__)

_LARGEST_SHARE = 20
"""The reserve is at most this part of a disk, so that a small one can be used at all."""
_ROOM_SECONDS = 10.0
"""The shortest time between two requests to make room, which cost a checkpoint each."""


class DiskSpace(NamedTuple):
    """The size of a disk and what is free, in bytes."""

    total: int
    free: int


class StoresExperience(Protocol):
    """The inbox of a learner, as far as its disk goes."""

    @property
    def is_full(self) -> bool:
        """Whether the last segments did not fit on the disk."""

    def suspend(self, problem: str) -> None:
        """Store nothing, for this reason; an empty one ends that."""

    def removal(self) -> str:
        """What is gone of its directory; empty if nothing is."""


class Stored(Protocol):
    """A learner, as far as its disk goes."""

    @property
    def inbox(self) -> StoresExperience:
        """Its inbox."""

    def make_room(self) -> None:
        """Save a checkpoint, and remove from the log what it covers."""


class StorageWatch:
    """Called every second. While something is wrong with the disk, no learner acknowledges anything."""

    def __init__(
        self,
        data: Path,
        reserve_bytes: int,
        clock: Callable[[], float],
        space: Callable[[Path], DiskSpace] | None = None,
    ) -> None:
        self._data, self._reserve_bytes, self._clock = data, reserve_bytes, clock
        self._space = space or disk_space
        self._identity = identity(data)
        self._asked: float | None = None
        self.problem = ""
        """Why nothing is stored at all; empty if experience is stored."""
        self.free_bytes = 0
        """Free space on the disk, as of the last check."""
        self._note(self._find_problem())

    def check(self, learners: Iterable[Stored]) -> None:
        """Look at the disk, and suspend or resume the learners."""
        learners = list(learners)
        self._note(self._find_problem())
        for learner in learners:
            learner.inbox.suspend(self.problem or learner.inbox.removal())
        is_short = self.problem or any(learner.inbox.is_full for learner in learners)
        if is_short and identity(self._data) == self._identity:
            self._make_room(learners)

    def _find_problem(self) -> str:
        if identity(self._data) != self._identity:
            return (
                f"{self._data} was removed or replaced while the server was running. Nothing is acknowledged any more. "
                f"End the server, restore the directory from a backup (rl4sys data restore), and start it again."
            )
        space = self._space(self._data)
        self.free_bytes = space.free
        reserve = min(self._reserve_bytes, space.total // _LARGEST_SHARE)
        if space.free >= reserve:
            return ""
        return (
            f"The disk of {self._data} has {space.free} bytes left, and {reserve} are kept free "
            f"(limits.disk_reserve_bytes). Nothing is acknowledged until there is space again: what was learned is "
            f"being removed from the logs; free space, or use a larger disk."
        )

    def _note(self, problem: str) -> None:
        before, self.problem = self.problem, problem
        if problem and not before:
            _log.error("Nothing is acknowledged: %s", problem)
        elif before and not problem:
            _log.info("There is space on the disk of %s again.", self._data)

    def _make_room(self, learners: Iterable[Stored]) -> None:
        now = self._clock()
        if self._asked is not None and now - self._asked < _ROOM_SECONDS:
            return
        self._asked = now
        for learner in learners:
            learner.make_room()


def disk_space(path: Path) -> DiskSpace:
    """The space on the disk of a path."""
    usage = shutil.disk_usage(path)
    return DiskSpace(usage.total, usage.free)


def identity(path: Path) -> tuple[int, int] | None:
    """What distinguishes a directory from another one of the same name; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
