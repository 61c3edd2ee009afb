"""An exit hook that closes open agents, so that a program that never calls `close` still sends its experience."""

from __future__ import annotations

import atexit
from typing import Protocol

_SECONDS = 2.0
"""Timeout for each agent: long enough for a server that is up, short enough not to delay the end of the program."""


class _Closable(Protocol):
    @property
    def is_ours(self) -> bool:
        """Whether this process connected it."""

    def close(self, timeout: float) -> None:
        """Send the backlog and stop."""


_open: set[_Closable] = set()


def remember(agent: _Closable) -> None:
    """Close this agent when the program ends."""
    _open.add(agent)


def forget(agent: _Closable) -> None:
    """Forget an agent that was closed."""
    _open.discard(agent)


@atexit.register
def close_forgotten() -> None:
    """Close every agent that is still open. A forked child leaves them to its parent."""
    for agent in [agent for agent in _open if agent.is_ours]:
        agent.close(_SECONDS)
