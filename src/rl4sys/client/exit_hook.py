"""Programs that end without `close`: what they have recorded is sent all the same."""

from __future__ import annotations

import atexit
from typing import Protocol

_SECONDS = 2.0
"""For each agent: long enough for a server that is there, and short enough for whoever waits for the program to end."""


class _Closing(Protocol):
    @property
    def is_ours(self) -> bool:
        """Whether this process connected it."""

    def close(self, timeout: float) -> None:
        """Send what there is, and stop."""


_open: set[_Closing] = set()


def remember(agent: _Closing) -> None:
    """It is to be closed before the program ends."""
    _open.add(agent)


def forget(agent: _Closing) -> None:
    """It was closed."""
    _open.discard(agent)


@atexit.register
def close_forgotten() -> None:
    """Close what is still open. A forked child leaves that to its parent."""
    for agent in [agent for agent in _open if agent.is_ours]:
        agent.close(_SECONDS)
