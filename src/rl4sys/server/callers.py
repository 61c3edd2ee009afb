"""Who is calling, and which client ids they may use."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whose right to call has been checked."""

    patterns: tuple[str, ...] = ("*",)
    """Client ids, with `*` and `?`, that they may use."""
    peer: str = ""
    """Their network address; empty within one process."""

    def may_use(self, client: str) -> bool:
        """Whether they may speak for a client."""
        return any(fnmatchcase(client, pattern) for pattern in self.patterns)


ANYONE = Caller()
"""Within one process, or where the server asks for no token."""
