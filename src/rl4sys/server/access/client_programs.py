"""Detection of two programs that use one client id."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import NamedTuple

_log = logging.getLogger(__name__)

_RECENT_SECONDS = 60.0
_REMEMBERED = 8


class _Call(NamedTuple):
    time: float
    peer: str


class ClientPrograms:
    """The epochs under which one client calls.

    A program that was restarted calls under a new epoch and never again under the old one. If an epoch calls again
    within a minute, after another one did, both programs are running.
    """

    def __init__(self, client: str) -> None:
        self._client = client
        self._calls: OrderedDict[int, _Call] = OrderedDict()
        """The last call of each epoch, the newest at the end."""
        self._warning = ""
        self._seen_at = 0.0

    def note(self, epoch: int, peer: str, now: float) -> None:
        """Note a call; an epoch of 0 is unknown, from a client of an earlier version."""
        if not epoch:
            return
        newest = next(reversed(self._calls), epoch)
        if newest != epoch and epoch in self._calls and now - self._calls[epoch].time <= _RECENT_SECONDS:
            self._report(self._calls[newest].peer, peer, now)
        self._calls[epoch] = _Call(now, peer)
        self._calls.move_to_end(epoch)
        if len(self._calls) > _REMEMBERED:
            self._calls.popitem(last=False)

    def warning(self, now: float) -> str:
        """What is wrong and what to do; empty unless two programs called in turn within the last minute."""
        return self._warning if now - self._seen_at <= _RECENT_SECONDS else ""

    def _report(self, other: str, peer: str, now: float) -> None:
        is_new = not self.warning(now)
        self._seen_at = now
        if not is_new:
            return
        first, second = sorted((other or "the server's own process", peer or "the server's own process"))
        self._warning = (
            f"Two programs use the client id '{self._client}': one at {first}, one at {second}. Give each its own "
            f"client_id, or end one of them."
        )
        _log.warning("%s", self._warning, extra={"client": self._client})
