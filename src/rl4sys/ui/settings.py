"""What `rl4sys ui` shows, and where it listens."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rl4sys.ui.page_address import PageAddress
from rl4sys.ui.server_access import ServerAccess


@dataclass(frozen=True, slots=True)
class UiSettings:
    """The settings of one process of `rl4sys ui`."""

    runs: tuple[Path, ...] = ()
    """Directories with runs."""
    servers: tuple[str, ...] = ()
    """Addresses of training servers."""
    address: PageAddress = field(default_factory=PageAddress)
    """Where it listens."""
    access: ServerAccess = field(default_factory=ServerAccess)
    """How servers are asked."""
    ask_seconds: float = 2.0
    """Between two questions to a server."""
