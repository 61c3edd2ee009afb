"""Named points at which tests kill the process, to check what a kill right there leaves behind.

Without a listener a failpoint costs one comparison. The files of a log have their own points, in `rl4sys.records`.
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
    "before version archive",
    "after version archive",
    "before command",
    "after command",
    "before successor rename",
    "after successor rename",
    "backup opened",
    "before backup file",
    "after backup file",
    "backup before end of log",
    "before log prune",
    "after log prune",
    "before parcel",
    "after parcel",
    "before settlement",
    "after settlement",
    "before parcels rewritten",
    "after parcels rewritten",
    "before outbox prune",
    "after outbox prune",
)

_listener: Callable[[str], None] | None = None


def failpoint(name: str) -> None:
    """Report that this point is reached; a listener may end the process."""
    if _listener is not None:
        _listener(name)


def listen(listener: Callable[[str], None] | None) -> None:
    """Call `listener` at every failpoint that this process reaches, in any of its threads; None removes it."""
    global _listener
    _listener = listener
