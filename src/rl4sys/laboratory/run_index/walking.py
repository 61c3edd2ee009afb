"""Looks for runs in a directory and in those below it, thousands of them in a moment."""

from __future__ import annotations

import os
from collections.abc import Callable, Container
from pathlib import Path

from rl4sys.run_files import is_run

DEPTH = 4
"""Levels of directories that are looked into, such as those of sweeps."""


def runs_below(root: Path, known: Container[str], tell: Callable[[str], None]) -> dict[str, int]:
    """Every run with its time of change in nanoseconds. What is known as a run need not be looked into again."""
    found: dict[str, int] = {}
    waiting = [("", 0)]
    while waiting:
        prefix, depth = waiting.pop()
        for entry in _directories(root / prefix, tell):
            id_ = prefix + entry.name
            if id_ not in known and not is_run(root / id_):
                if depth < DEPTH:
                    waiting.append((f"{id_}/", depth + 1))
                continue
            try:
                found[id_] = entry.stat().st_mtime_ns
            except FileNotFoundError:
                # It was removed meanwhile, which says nothing about the others.
                continue
    return found


def _directories(path: Path, tell: Callable[[str], None]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return [entry for entry in entries if entry.name[0] != "." and entry.is_dir()]
    except PermissionError:
        tell(f"left out: {path} may not be looked into")
    except (FileNotFoundError, NotADirectoryError):
        # It was removed meanwhile.
        pass
    return []
