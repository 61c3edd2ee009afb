"""The two processes of the demo, a training server and its client. Both end with the process that started them."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).parent
_GRACE_SECONDS = 15.0
"""Longer than a server takes to drain."""
_PR_SET_PDEATHSIG = 1


class ChildFailed(RuntimeError):
    """A process of the demo ended before its work was done."""


@contextmanager
def training_server(data: Path, log: Path) -> Iterator[str]:
    """Run `rl4sys serve` on a free port of this machine; yields its address."""
    command = ["-m", "rl4sys.cli", "serve", "--listen", "127.0.0.1:0", "--data", str(data)]
    with _child(command, log) as (process, output):
        words = output.readline().split()
        if len(words) != 2 or words[0] != "serving":
            process.wait()
            raise ChildFailed(f"The server did not start:\n{_tail(log)}")
        yield f"127.0.0.1:{words[1]}"


@contextmanager
def client(arguments: list[str], log: Path) -> Iterator[Iterator[dict[str, Any]]]:
    """Run the client; yields its messages until it has finished."""
    with _child([str(HERE / "client.py"), *arguments], log) as (process, output):
        yield map(json.loads, output)
        if process.wait() != 0:
            raise ChildFailed(f"The client ended with code {process.returncode}:\n{_tail(log)}")


@contextmanager
def _child(arguments: list[str], log: Path) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Start a Python process in its own session: Ctrl-C reaches the parent alone, which then ends its children."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
            preexec_fn=_ending_with_parent(),
        )
    try:
        if process.stdout is None:
            raise ChildFailed("The output of the process cannot be read.")
        with process.stdout as output:
            yield process, output
    finally:
        _end(process)


def _ending_with_parent() -> Callable[[], None] | None:
    """A hook that asks the kernel to send SIGTERM when the parent dies, even by kill -9."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return lambda: library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text().splitlines()[-lines:])
