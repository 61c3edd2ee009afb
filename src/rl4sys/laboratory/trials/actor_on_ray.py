"""One process of a trial on a Ray cluster: the actor that started it, and what it said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from rl4sys.laboratory.trials.launcher import Ended, Outcome, TrialEvent
from rl4sys.laboratory.trials.trial_host import decode_events

_WAIT_SECONDS = 1.0
"""Seconds that an actor waits for the next event of its process."""
_END_SECONDS = 3.0
"""Seconds to wait for processes that are killed."""


class TrialActor:
    """An actor that runs one order."""

    def __init__(self, key: str, host: Any, order: str) -> None:
        self._key, self.host = key, host
        self.pending: Any = host.start.remote(order)
        """The reply that is being waited for; None once the process has ended."""
        self.machine: str | None = None
        """Where it runs, once it has started."""
        self.is_alive = True
        """Whether the actor answers, as far as is known."""

    def take(self) -> list[TrialEvent]:
        """The events of a reply that has arrived; the next one is asked for unless the process has ended."""
        try:
            reply = ray.get(self.pending)
        except RayTaskError as error:
            # An error on the node, and not the loss of it: it would come again.
            return self._ended(Ended(self._key, Outcome.FAILED, str(error.cause)))
        except RayError as error:
            self.is_alive = False
            cause = f"its node was lost ({type(error).__name__})"
            return self._ended(Ended(self._key, Outcome.FAILED, cause, was_killed=True))
        found: list[TrialEvent] = []
        if self.machine is None:
            self.machine = str(reply)
        else:
            found = decode_events(reply)
        if found and isinstance(found[-1], Ended):
            self.pending = None
        else:
            self.pending = self.host.events.remote(_WAIT_SECONDS)
        return found

    def stop(self) -> None:
        """Ask the process to save and end."""
        self.host.stop.remote()

    def _ended(self, ended: Ended) -> list[TrialEvent]:
        self.pending = None
        return [ended]


def end_processes(hosts: Sequence[Any]) -> None:
    """Kill the processes of actors, and the actors."""
    try:
        if hosts:
            ray.wait([host.end.remote() for host in hosts], num_returns=len(hosts), timeout=_END_SECONDS)
    finally:
        for host in hosts:
            ray.kill(host)
