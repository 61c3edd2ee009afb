"""Counts updates that are skipped because they are not finite; too many in a row end the run."""

from __future__ import annotations

import logging

from rl4sys.networks import NonFiniteUpdate
from rl4sys.state import State

_log = logging.getLogger(__name__)

MAX_SKIPPED_IN_ROW = 10
"""Skipped updates in a row after which learning counts as diverged."""


class Diverged(ArithmeticError):
    """Learning produced NaN or Inf, again and again or in the weights."""


class SkippedUpdates:
    """The number of skipped updates, in total and in a row."""

    def __init__(self, limit: int = MAX_SKIPPED_IN_ROW) -> None:
        self.total = 0
        """In the whole run."""
        self.in_row = 0
        """Since the last successful update."""
        self._limit = limit

    def note(self, error: NonFiniteUpdate, update: int, steps: int) -> None:
        """Count a skipped update; raises `Diverged` if there are too many in a row."""
        self.total += 1
        self.in_row += 1
        if self.in_row == 1:
            _log.warning("Update %d at step %s is skipped. %s", update, f"{steps:,}", error)
        if self.in_row >= self._limit:
            raise Diverged(
                f"The last {self.in_row} updates were not finite and were skipped, up to update {update} at step "
                f"{steps:,}. {error} Lower algorithm.lr or normalise rewards and observations; earlier checkpoints "
                f"are intact."
            ) from error

    def state(self) -> State:
        """Both counts."""
        return {"total": self.total, "in_row": self.in_row}

    def restore(self, state: State) -> None:
        """Continue from saved counts."""
        self.total, self.in_row = int(state["total"]), int(state["in_row"])
