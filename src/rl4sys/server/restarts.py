"""When a worker that failed is started again, and when it is given up."""

from __future__ import annotations

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 30.0


class Restarts:
    """A pure state machine: failures and positions in, delays out."""

    def __init__(self, most_in_vain: int = 3, first_seconds: float = _FIRST_SECONDS) -> None:
        self.count = 0
        """How often it was started again."""
        self._most_in_vain = most_in_vain
        self._first_seconds = first_seconds
        self._in_vain = 0
        self._reached = -1
        self._reached_before = -1

    def note_progress(self, position: int) -> None:
        """The worker has folded the log up to here."""
        self._reached = max(self._reached, position)

    def after_failure(self) -> float | None:
        """Seconds to wait before the next start; None to give up.

        Only going further than ever counts as progress: a worker that repeats the way to the same failure makes none.
        """
        self._in_vain = 1 if self._reached > self._reached_before else self._in_vain + 1
        self._reached_before = self._reached
        if self._in_vain >= self._most_in_vain:
            return None
        self.count += 1
        return min(_LONGEST_SECONDS, self._first_seconds * 2.0 ** (self._in_vain - 1))
