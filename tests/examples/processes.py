"""Programs of `examples/`, run as people run them."""

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

    What it and its children put aside goes into `temporary`, by which `named_after` knows them.
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
    """Processes that name this path: those that `start` began, whoever their parent is now."""
    return [int(each.name) for each in Path("/proc").glob("[0-9]*") if str(path).encode() in _words(each)]


def ended(path: Path, seconds: float) -> bool:
    """Wait until no process is named after a path; false if there still is one."""
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
        # It ended while this looked, or belongs to somebody else.
        return b""
