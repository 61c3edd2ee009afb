"""Programs of `examples/`, started as users start them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO = EXAMPLES / "demo"
LANDER = EXAMPLES / "lunar_lander"


@contextmanager
def start(*command: str | Path, temporary: Path) -> Iterator[subprocess.Popen[str]]:
    """A Python program whose output can be read line by line; killed at the end if it still runs.

    Its temporary files and those of its children go into `temporary`, by which `named_after` finds them.
    """
    arguments = [sys.executable, "-u", *map(str, command)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def named_after(path: Path) -> list[int]:
    """Processes with this path in their environment: those that `start` began, and their descendants."""
    return [int(each.name) for each in Path("/proc").glob("[0-9]*") if str(path).encode() in _words(each)]


def ended(path: Path, seconds: float) -> bool:
    """Wait until no process with this path is left; false if one remains."""
    deadline = time.monotonic() + seconds
    while named_after(path):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _words(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        # It has ended meanwhile, or belongs to another user.
        return b""
