"""Which share of its episodes each client should record: more would be too old when the learner gets to it.

A small controller. Where steps were too old, or so many wait that they will be, it lowers the share to what the learner
can use; while all are used, it raises the share again.
"""

from __future__ import annotations

from typing import NamedTuple

_SECONDS = 0.5
_VERSIONS = 3
"""A measurement takes at least this long: the number of versions evens out that a learner works in batches."""
_USED = 0.97
"""The share may grow while at least this fraction of steps is used."""
_MAX_WAITING = 2.0
"""Batches that may wait: one arrives while the learner is busy with another, and clients lag behind."""
_FEW_WAITING = 0.75
_FAST_GROWTH, _SLOW_GROWTH = 1.2, 1.02
_NEAR = 0.7
_HEADROOM = 0.93
"""The share aims at this part of what the learner can use."""
_LARGEST_CUT = 0.1
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
        """Above 0 and up to 1."""
        self._begin: tuple[LearnerLoad, float] | None = None
        """When the present measurement began."""
        self._settled = 0
        """Steps that were stored before the last change say nothing about the present share."""
        self._changed_at = float("-inf")
        self._enough = 1.0
        """The share that was last measured to be as much as the learner can use."""

    def restart(self) -> None:
        """Keep the share, and begin the next measurement with the next load."""
        self._begin, self._settled = None, 0

    def note(self, load: LearnerLoad, now: float) -> float:
        """Take the present load into account; returns the share."""
        if self._begin is None or load.folded < self._begin[0].folded:
            # The first one, or that of a worker that folds its log again.
            self._begin = (load, now)
        elif load.folded < self._settled or now - self._changed_at < _GRACE_SECONDS:
            self._begin = (load, now)
        elif load.waiting > 2 * _MAX_WAITING:
            # Not waiting for the end of a measurement: what comes now is too old already.
            self._change(_MAX_WAITING / load.waiting, load, now)
        else:
            self._measure(*self._begin, load, now)
        return self.value

    def _measure(self, begin: LearnerLoad, since: float, load: LearnerLoad, now: float) -> None:
        folded, unused = load.folded - begin.folded, load.unused - begin.unused
        is_busy = load.waiting > _FEW_WAITING or unused
        if now - since < _SECONDS or (is_busy and load.version - begin.version < _VERSIONS):
            return
        arrived, used = load.stored - begin.stored, folded - unused
        if load.waiting > _MAX_WAITING or used < _USED * folded:
            self._change(_HEADROOM * used / max(arrived, used, 1), load, now)
            self._enough = self.value
        else:
            growth = _SLOW_GROWTH if is_busy or self.value > _NEAR * self._enough else _FAST_GROWTH
            self.value = min(1.0, self.value * (growth if folded else 1.0))
            self._begin = (load, now)

    def _change(self, factor: float, load: LearnerLoad, now: float) -> None:
        self.value = max(_LEAST, self.value * min(_HEADROOM, max(_LARGEST_CUT, factor)))
        self._settled, self._changed_at = load.stored, now
        self._begin = (load, now)
