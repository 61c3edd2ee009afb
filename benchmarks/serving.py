"""A real training server in a separate process, for benchmarks."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that listens on a port of this machine."""

    port: int
    process: subprocess.Popen[str]

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        """CPU time of the ingest process alone, without its learners."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def serving(*arguments: str) -> Iterator[Serving]:
    """Serve on a free port, with a temporary data directory."""
    with tempfile.TemporaryDirectory(prefix="rl4sys-bench-") as data:
        command = [sys.executable, "-m", "rl4sys.server", "--listen", "127.0.0.1:0", "--data", data, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline().split()
            if not line:
                raise RuntimeError(f"The server ended with code {process.wait()}.")
            yield Serving(int(line[1].partition("-")[0]), process)
        finally:
            process.terminate()
            process.wait()
