"""Which share of its episodes each client should record: more would be too old when the learner gets to it.

A small controller. Where steps were too old, or so many wait that they will be, it lowers the share to what the learner
can use; while all are used, it raises the share again.
"""

from __future__ import annotations

from typing import NamedTuple

_SECONDS, _MOST_SECONDS = 0.5, 10.0
_VERSIONS = 3
"""A measurement takes this long: the number of versions evens out that a learner works in batches."""
_USED = 0.97
"""The share may grow while at least this fraction of steps is used."""
_MAX_WAITING, _MAX_WAITING_AT_FIRST = 2.5, 1.25
"""Batches that may wait: one arrives while the learner is busy with another, and clients lag behind."""
_MUCH_WAITING = 0.75
_WANTED_WAITING = 0.9
"""What arrives during an update, in batches, is the part of the time that the learner works: it shall wait little."""
_FAST_GROWTH, _SLOW_GROWTH = 1.5, 1.02
_IDLE_GROWTH = 1.05
"""While nothing arrives and nothing waits: clients may have left, become slow, or be in long episodes."""
_LARGEST_GROWTH = 2.0
_MOST_PERIODS = 64.0
"""Enough for the largest growth; a learner may be idle for months, and the power would overflow."""
_HEADROOM = 0.93
"""The share aims at this part of what the learner can use."""
_LARGEST_CUT = 0.4
_GRACE_SECONDS = 1.0
"""After a lower share: clients hear of it a little later, and some of what they recorded before is on its way."""
_LEAST = 1e-4


class LearnerLoad(NamedTuple):
    """What a learner has done so far, and what waits for it."""

    stored: int = 0
    """Steps that were ever stored."""
    folded: int = 0
    """Steps that it has got to, whether it used them or not."""
    unused: int = 0
    """Steps that were too old."""
    version: int = 0
    waiting: float = 0.0
    """What is stored and waits, in units of what may wait without becoming too old: batches of an on-policy learner,
    quarters of the inbox of another."""


class RecordShare:
    """Computes the share from the load of a learner, which its owner reports often."""

    def __init__(self) -> None:
        self.value = 1.0
        """Above 0 and up to 1, without regard to what waits at present."""
        self._begin: tuple[LearnerLoad, float] | None = None
        """When the present measurement began."""
        self._settled = 0
        """Steps that were stored before the last change say nothing about the present share."""
        self._changed_at = float("-inf")
        self._first_version = 0
        """The version when the first measurement began."""
        self._peak = 0.0
        """The most that waited during the present measurement."""

    def restart(self) -> None:
        """Keep the share, and begin the next measurement with the next load."""
        self._begin, self._settled = None, 0

    def note(self, load: LearnerLoad, now: float) -> float:
        """Take the present load into account; returns the share."""
        self._peak = max(self._peak, load.waiting)
        if self._begin is None:
            self._first_version = load.version
        if self._begin is None or load.folded < self._begin[0].folded:
            # The first one, or that of a worker that folds its log again.
            self._measure_from(load, now)
        elif now - self._changed_at < _GRACE_SECONDS or load.folded < self._settled:
            self._measure_from(load, now)
        elif load.waiting > self._may_wait(load):
            # Not waiting for the end of a measurement: what comes now is too old already.
            self._cut(self._part_used(load), load, now)
        else:
            self._measure(*self._begin, load, now)
        return self.given(load)

    def given(self, load: LearnerLoad) -> float:
        """The share by what is known. If too much waits, that comes first: clients record next to nothing meanwhile."""
        return _LEAST if load.waiting > self._may_wait(load) else self.value

    def _may_wait(self, load: LearnerLoad) -> float:
        """How much may wait at any moment: less while it is not known how fast the learner is."""
        return _MAX_WAITING if load.version > self._first_version else _MAX_WAITING_AT_FIRST

    def _part_used(self, load: LearnerLoad) -> float:
        """The part of what arrived during the present measurement that was used meanwhile."""
        begin = self._begin[0] if self._begin is not None else load
        arrived, used = load.stored - begin.stored, (load.folded - begin.folded) - (load.unused - begin.unused)
        return _HEADROOM * used / max(arrived, used) if arrived > 0 else 1.0

    def _measure(self, begin: LearnerLoad, since: float, load: LearnerLoad, now: float) -> None:
        folded, unused = load.folded - begin.folded, load.unused - begin.unused
        is_busy = load.waiting > _MUCH_WAITING or unused
        is_long = load.version - begin.version >= _VERSIONS or now - since >= _MOST_SECONDS
        if now - since < _SECONDS or (is_busy and not is_long):
            return
        if folded - unused < _USED * folded:
            self._cut(self._part_used(load), load, now)
            return
        if folded:
            growth = min(_FAST_GROWTH, max(_SLOW_GROWTH, _WANTED_WAITING / max(self._peak, _LEAST)))
        else:
            growth = 1.0 if load.waiting else _IDLE_GROWTH
        periods = min(_MOST_PERIODS, (now - since) / _SECONDS)
        self.value = min(1.0, self.value * min(_LARGEST_GROWTH, growth**periods))
        self._measure_from(load, now)

    def _cut(self, factor: float, load: LearnerLoad, now: float) -> None:
        self.value = max(_LEAST, self.value * min(_HEADROOM, max(_LARGEST_CUT, factor)))
        self._settled, self._changed_at = load.stored, now
        self._measure_from(load, now)

    def _measure_from(self, load: LearnerLoad, now: float) -> None:
        self._begin, self._peak = (load, now), load.waiting
