"""Updates that were not finite: left out, counted, and a failure when they do not end."""

from __future__ import annotations

import logging

from rl4sys.networks import NonFiniteUpdate
from rl4sys.state import State

_log = logging.getLogger(__name__)

MAX_SKIPPED_IN_ROW = 10
"""Updates in a row that may be left out before learning counts as diverged."""


class Diverged(ArithmeticError):
    """Learning left the range of numbers."""


class SkippedUpdates:
    """Counts the updates that were left out."""

    def __init__(self, patience: int = MAX_SKIPPED_IN_ROW) -> None:
        self.total = 0
        """In the whole run."""
        self.in_row = 0
        """Since the last update that went well."""
        self._patience = patience

    def note(self, error: NonFiniteUpdate, update: int, steps: int) -> None:
        """Take note of one; raises `Diverged` when there were too many in a row."""
        self.total += 1
        self.in_row += 1
        if self.in_row == 1:
            _log.warning("Update %d at step %s is left out. %s", update, f"{steps:,}", error)
        if self.in_row >= self._patience:
            raise Diverged(
                f"The last {self.in_row} updates were not finite and left out, up to update {update} at step "
                f"{steps:,}. {error} Lower algorithm.lr or normalise rewards and observations; what was saved before "
                f"is intact."
            ) from error

    def state(self) -> State:
        """Both counts."""
        return {"total": self.total, "in_row": self.in_row}

    def restore(self, state: State) -> None:
        """Go on counting there."""
        self.total, self.in_row = int(state["total"]), int(state["in_row"])
