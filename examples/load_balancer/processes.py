"""The processes of the live service: backends, the generator, and a training server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rl4sys.environments.balancing.requests import SPEEDS

_ROOT = Path(__file__).parents[2]
_GRACE = 10.0


class ProcessEnded(RuntimeError):
    """A process of the example ended early; the message has what it said."""


@contextmanager
def started(*arguments: str, errors: Path) -> Iterator[subprocess.Popen[str]]:
    """A Python process for the `with` block; what it writes to standard error goes to a file."""
    with errors.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=log, text=True, cwd=_ROOT
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdout is not None:
            process.stdout.close()


def serving_port(process: subprocess.Popen[str], errors: Path) -> int:
    """The port that a process prints when it serves."""
    assert process.stdout is not None
    words = process.stdout.readline().split()
    if len(words) != 2 or words[0] != "serving":
        raise ProcessEnded(f"A process ended before it served: {errors.read_text().strip()[-500:]}")
    return int(words[1])


def backend_arguments(number: int, *, chaos: bool, began: float) -> list[str]:
    """The command of one backend; chaos disturbs the fastest."""
    arguments = ["-m", "examples.load_balancer.backend", "--speed", str(SPEEDS[number]), "--began", str(began)]
    return [*arguments, "--chaos"] if chaos and SPEEDS[number] == max(SPEEDS) else arguments


def read_latencies(text: str) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Intended times and latencies of answered requests, and how many failed, from the lines of the generator."""
    table = np.array([line.split() for line in text.splitlines()], np.float64).reshape(-1, 3)
    answered = table[table[:, 2] == 200]
    return answered[:, 0], answered[:, 1], len(table) - len(answered)
