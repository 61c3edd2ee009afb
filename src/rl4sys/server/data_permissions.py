"""Whether other users of the machine can reach the data of a server."""

from __future__ import annotations

import stat
from pathlib import Path

from rl4sys.server.server_warnings import ServerWarnings

_TOPIC = "permissions"


def check_permissions(data: Path, warnings: ServerWarnings) -> None:
    """Warn as long as other users can enter the data directory. A server creates it for its own user only."""
    try:
        mode = data.stat().st_mode
    except OSError:
        # That it is gone, the watch of the disk reports.
        return
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        can = "change" if mode & (stat.S_IWGRP | stat.S_IWOTH) else "read"
        warnings.set(
            _TOPIC,
            f"Other users of this machine can {can} what is in {data} (mode {stat.S_IMODE(mode):04o}): observations, "
            f"policies and the audit log. Run: chmod 700 {data}",
        )
    else:
        warnings.clear(_TOPIC)
