"""One alert at work: the past that its condition looks back on, since when it holds, and when it fired last."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

from rl4sys.alerts.conditions import AlertCondition, MetricHistory
from rl4sys.state import State

_MOST_REMEMBERED = 10_000
"""Values of one metric that are kept; older ones go first."""


def require_complete(do: Iterable[str], notify: Iterable[str]) -> None:
    """Raise `ValueError` unless there are addresses exactly if messages are to be sent."""
    sends, addresses = "notify" in do, list(notify)
    if sends and not addresses:
        raise ValueError("do has 'notify', but notify has no address; add one, such as json://localhost:8080/hook")
    if addresses and not sends:
        raise ValueError("notify has an address, but do does not have 'notify'; add it")


class AlertWatch:
    """Follows a condition over time, which is counted in whatever its user counts in: steps of a run, or seconds."""

    def __init__(self, when: str, over: float, lasting: float, quiet: float) -> None:
        """`over`: how far functions look back. `lasting`: how long it has to hold. `quiet`: the pause after firing."""
        self.condition = AlertCondition(when)
        self.since: float | None = None
        """When the condition began to hold; None while it does not."""
        self._over, self._lasting, self._quiet = over, lasting, quiet
        self._past: dict[str, list[tuple[float, float]]] = {name: [] for name in self.condition.remembered}
        self._fired: float | None = None

    def fires(self, time: float, fresh: Mapping[str, float], now: Mapping[str, float]) -> bool:
        """Whether it is time to act. `fresh` was measured just now; `now` has the newest value of everything."""
        for name, past in self._past.items():
            if math.isfinite(fresh.get(name, math.nan)):
                past.append((time, fresh[name]))
                self._forget(past, time)
        if not self.condition.holds(MetricHistory(now, self._past, self._over)):
            self.since = None
            return False
        self.since = time if self.since is None else self.since
        if not self.is_firing(time) or (self._fired is not None and time - self._fired < self._quiet):
            return False
        self._fired = time
        return True

    def is_firing(self, time: float) -> bool:
        """Whether the condition has held for long enough."""
        return self.since is not None and time - self.since >= self._lasting

    def _forget(self, past: list[tuple[float, float]], time: float) -> None:
        """Of what is older than the window only the best is needed, to know whether anything improved."""
        old = bisect_right(past, time - self._over, key=lambda pair: pair[0])
        if old > 1:
            past[:old] = [max(past[:old], key=lambda pair: pair[1])]
        del past[:-_MOST_REMEMBERED]

    def values(self, now: Mapping[str, float]) -> dict[str, float]:
        """The metrics that the condition reads, as they are now."""
        return {name: now[name] for name in sorted(self.condition.metrics) if name in now}

    def state(self) -> State:
        """When it fired, since when it holds, and the past."""
        past = {name: [list(pair) for pair in pairs] for name, pairs in self._past.items()}
        return {"when": self.condition.text, "since": self.since, "fired": self._fired, "past": past}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue there."""
        self.since, self._fired = state["since"], state["fired"]
        for name, pairs in state["past"].items():
            self._past[name] = [(time, float(value)) for time, value in pairs]
