"""The processes of workers on Ray that a test has started."""

from __future__ import annotations

import os
from pathlib import Path

from tests.time_limits import MARK


def ray_workers() -> list[int]:
    """The processes of workers on nodes of this test's cluster."""
    mark, found = f"{MARK}={os.environ[MARK]}".encode(), []
    for entry in Path("/proc").iterdir():
        try:
            is_worker = entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"ray::RemoteWorker")
            if is_worker and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found
