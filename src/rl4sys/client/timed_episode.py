"""An episode whose every decision is timed, for a profile."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from rl4sys.client.episode import Episode


class TimedEpisode(Episode):
    """Notes how long each `act` took. An open episode can become one, because it has no attributes of its own."""

    __slots__ = ()

    def act(self, observation: Any, mask: Any = None, now: float | None = None) -> Any:
        """Choose the action for an observation."""
        began = perf_counter_ns()
        try:
            return Episode.act(self, observation, mask, now)
        finally:
            self.shared.times.each.append(perf_counter_ns() - began)
