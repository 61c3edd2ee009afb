"""Lets a safe rule decide while the service or the policy is in a bad state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from rl4sys.environments.balancing.backend_view import BackendView

MANY = 64
"""Requests in flight at one backend."""
OLD = 3.0
"""Seconds of the oldest wait at one backend."""
STALE = 60.0
"""Seconds since the policy was last replaced."""


class BalancingGuard:
    """Says when the safe rule decides, and counts why."""

    def __init__(self, age: Callable[[], float | None] = lambda: 0.0) -> None:
        """`age`: seconds since the policy was last replaced; None if there is none."""
        self._age = age
        self.counts: Counter[str] = Counter()
        """Decisions of the safe rule by reason, and those left to the policy as `policy`."""

    def steps_in(self, views: list[BackendView], now: float) -> bool:
        """Whether the safe rule takes this decision."""
        reason = self._reason(views, now)
        self.counts[reason or "policy"] += 1
        return reason is not None

    def _reason(self, views: list[BackendView], now: float) -> str | None:
        age = self._age()
        if age is None or age > STALE:
            return "stale policy"
        if max(view.in_flight for view in views) > MANY:
            return "too much in flight"
        if max(view.oldest(now) for view in views) > OLD:
            return "too old a wait"
        return None
