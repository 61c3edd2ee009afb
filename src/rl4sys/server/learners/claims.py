"""Learners that no client knows of yet: each was made for a join that has not been answered.

A learner is claimed by the first join that is answered. Until then it is removed without a trace when its last join is
refused, and some time after its last client went away.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rl4sys.atomic_files import sync_directory
from rl4sys.wire.calls import CallFailed, Code

_MARKER = "unclaimed"
_PERMANENT = (Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION, Code.PERMISSION_DENIED, Code.NOT_FOUND)


def mark_unclaimed(directory: Path) -> None:
    """Mark the directory of a new learner, so that a server that starts again knows."""
    (directory / _MARKER).touch()


def is_unclaimed(directory: Path) -> bool:
    """Whether no client was ever told about the learner in this directory; it has no experience then."""
    return (directory / _MARKER).exists()


class Claims:
    """Joins that are under way, and learners that no client has claimed. Its owner holds a lock around every call."""

    def __init__(self) -> None:
        self._unclaimed: dict[str, float | None] = {}
        """When the last join left; None while one is under way."""
        self._joins: Counter[str] = Counter()

    def made(self, learner: str) -> None:
        """A learner was made for the join under way."""
        self._unclaimed[learner] = None

    def enter(self, learner: str) -> None:
        """A join of this learner, which need not exist, is under way."""
        self._joins[learner] += 1
        if learner in self._unclaimed:
            self._unclaimed[learner] = None

    def leave(self, learner: str, error: BaseException | None, now: float) -> bool:
        """A join ended; whether the learner has to be removed, because it was the last one and is refused for good."""
        self._joins[learner] -= 1
        if self._joins[learner]:
            return False
        del self._joins[learner]
        if learner not in self._unclaimed:
            return False
        self._unclaimed[learner] = now
        return isinstance(error, CallFailed) and error.code in _PERMANENT

    def claim(self, learner: str, directory: Path) -> None:
        """A client learns of the learner, which is kept from now on."""
        if learner in self._unclaimed:
            (directory / _MARKER).unlink(missing_ok=True)
            sync_directory(directory)
            del self._unclaimed[learner]

    def forget(self, learner: str) -> None:
        """The learner is removed."""
        self._unclaimed.pop(learner, None)

    def abandoned(self, before: float) -> list[str]:
        """Learners without a join since this time."""
        return [name for name, left in self._unclaimed.items() if left is not None and left <= before]
