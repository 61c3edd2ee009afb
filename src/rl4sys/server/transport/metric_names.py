"""Which learners and clients have metrics of their own."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TypeAlias

Key: TypeAlias = tuple[str, ...]


class NameBudget:
    """A bounded number of names, as stable as possible: a name that has its own metrics keeps them while it is active.

    Without a bound, clients with fresh names (an id per start, say) would fill the memory of Prometheus.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._named: dict[Key, None] = {}

    def choose(self, present: Mapping[Key, bool]) -> frozenset[Key]:
        """The names to keep, of those that are present; the values say which are active."""
        with self._lock:
            self._named = {key: None for key in self._named if key in present}
            waiting = sorted(
                (key for key in present if key not in self._named), key=lambda key: (not present[key], key)
            )
            active = sum(present[key] for key in waiting)
            surplus = min(active, len(waiting)) - (self._most - len(self._named))
            for key in [key for key in self._named if not present[key]][: max(0, surplus)]:
                del self._named[key]
            for key in waiting[: max(0, self._most - len(self._named))]:
                self._named[key] = None
            return frozenset(self._named)
