"""How much experience a learner wants of its clients, from the load of its inbox and the progress of its worker."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import lru_cache

from rl4sys.server.learners.inbox import Inbox
from rl4sys.server.learners.record_share import LearnerLoad, RecordShare
from rl4sys.server.workers.events import LearnerProgress

_INBOX_PARTS = 4
"""A learner that can use all experience wants less of it only when several of these parts of its inbox are full."""

_LEAST_STEPS = 256
"""What waits is measured in batches of at least so many steps: clients cannot be paced more finely."""


class Pacing:
    """Keeps the share of episodes that clients are asked to record. Any thread may call any method."""

    def __init__(self, inbox: Inbox, clock: Callable[[], float]) -> None:
        self._inbox, self._clock = inbox, clock
        self._share = RecordShare()
        self._folded = self._unused = 0
        self._lock = threading.Lock()

    @property
    def value(self) -> float:
        """The share that was found last, without regard to what waits at present."""
        return self._share.value

    def restart(self) -> None:
        """Keep the share and measure from the beginning: a new worker folds records that were folded before."""
        with self._lock:
            self._share.restart()

    def note_progress(self, progress: LearnerProgress) -> None:
        """Take what the worker has folded and not used. The inbox knows the position already."""
        load = self._inbox.load()
        with self._lock:
            self._folded, self._unused = load.stored_steps - load.waiting_steps, progress.unused.get("too_old", 0)

    def update(self, batch_steps: int | None, version: int) -> float:
        """The share by the present load, for a learner with batches of fresh experience, or one that replays (None)."""
        load = self._load(batch_steps, version)
        with self._lock:
            return self._share.note(load, self._clock())

    def after_batch(self, batch_steps: int | None, version: int) -> float:
        """The share when a batch was just learned from and still counts as waiting."""
        load = self._load(batch_steps, version)
        with self._lock:
            return self._share.given(load._replace(waiting=load.waiting - 1.0))

    def _load(self, batch_steps: int | None, version: int) -> LearnerLoad:
        load = self._inbox.load()
        waiting = (
            _INBOX_PARTS * load.filled if batch_steps is None else load.waiting_steps / max(batch_steps, _LEAST_STEPS)
        )
        return LearnerLoad(load.stored_steps, self._folded, self._unused, version, waiting)


@lru_cache(maxsize=1_024)
def fresh_batch(config: str) -> int | None:
    """Steps of a batch, if the learner uses only fresh experience of its own policy; None if it replays any.

    From its config in canonical form.
    """
    buffer = json.loads(config)["buffer"] if config else {}
    return int(buffer["size"]) if buffer.get("type") == "trajectory" else None
