"""Named moments at which a test may end the process, to see what a kill right there leaves behind.

A failpoint costs a look at one variable. What a log does to its files has points of its own, in `rl4sys.records`.
"""

from __future__ import annotations

from collections.abc import Callable

FAILPOINTS = (
    "before file write",
    "before file sync",
    "after file sync",
    "before file rename",
    "after file rename",
    "before directory rename",
    "after directory rename",
    "before link",
    "after link",
    "before checkpoint",
    "after replay rows",
    "after checkpoint files",
    "before checkpoint prune",
    "after checkpoint prune",
    "before learn",
    "after learn",
    "after version",
    "after offset",
    "before save",
    "after save",
    "before restore",
    "after restore",
    "before stored names",
    "after stored names",
    "before acknowledgement",
    "before version store",
    "after version store",
    "before log prune",
    "after log prune",
    "before parcel",
    "after parcel",
    "before settlement",
    "after settlement",
    "before parcels anew",
    "after parcels anew",
    "before outbox prune",
    "after outbox prune",
)

_listener: Callable[[str], None] | None = None


def failpoint(name: str) -> None:
    """Say that the moment of this name has come; whoever listens may never return."""
    if _listener is not None:
        _listener(name)


def listen(listener: Callable[[str], None] | None) -> None:
    """Hear of every failpoint that this process reaches, from any of its threads; None to stop."""
    global _listener
    _listener = listener
