"""Learners that no client uses any more are removed after a while, if the config of the server asks for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rl4sys.server.access.sessions import Sessions
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.learners import Learners

_USED = "used"
"""A file in the directory of a learner; its time is that of the last use, which must survive restarts."""
_LONGEST_PERIOD = 60.0
_GRACE_SECONDS = 3_600.0
"""After the start of a server its clients have this long to call, before anything expires."""


class LearnerExpiry:
    """Notes which learners are used, and removes those that are not. Called every second."""

    def __init__(
        self,
        learners: Learners,
        sessions: Sessions,
        remove: Callable[[HostedLearner, float], None],
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        """`remove` gets a learner and how long it was not used, in seconds."""
        self._learners, self._sessions, self._remove = learners, sessions, remove
        self._clock, self._wall_clock = clock, wall_clock
        self._began = self._checked = clock()

    def check(self, seconds: float | None) -> None:
        """Remove learners that were not used for so long; None for never."""
        now = self._clock()
        if seconds is None or now - self._checked < min(_LONGEST_PERIOD, seconds / 10):
            return
        since, self._checked = self._checked, now
        calls = [(each.learner.name, each.last_call) for each in self._sessions.clients()]
        called = {learner: at for learner, at in calls if at is not None and at >= since}
        for learner in self._learners.all():
            if learner.listening or learner.name in called:
                _note_use(learner.directory, self._wall_clock() - (now - called.get(learner.name, now)))
            unused = self._wall_clock() - _last_use(learner.directory)
            is_early = now - self._began < min(seconds, _GRACE_SECONDS)
            if unused >= seconds and not is_early and not learner.inbox.unfolded:
                self._remove(learner, unused)


def _note_use(directory: Path, time: float) -> None:
    file = directory / _USED
    file.touch()
    os.utime(file, (time, time))


def _last_use(directory: Path) -> float:
    """When a learner was used, in seconds since 1970; when it was created, if that was never noted."""
    file = directory / _USED
    return (file if file.exists() else directory / "setup.json").stat().st_mtime
