"""Learning through a training server, with two clients that share a policy."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

CLIENTS = ("cluster-a", "cluster-b")
RECENT = 20
"""Sequences at the beginning and at the end that a report compares."""
_TOP = Path(__file__).parents[2]
_GRACE_SECONDS = 20.0


class LiveFailed(RuntimeError):
    """The server or a client ended before its work was done."""


@dataclass(slots=True)
class ClientReport:
    """What one client reported."""

    decisions: int = 0
    version: int = 0
    guarded: int = 0
    """Decisions that the guard took or restricted, in finished sequences."""
    slowdown: list[float] = field(default_factory=list)
    """Of each finished sequence."""
    sjf: list[float] = field(default_factory=list)
    """Of the same sequences by SJF."""

    def hear(self, line: str) -> None:
        """Take a line of JSON of the client."""
        said = json.loads(line)
        self.decisions, self.version = said["decisions"], said["version"]
        if (sequence := said["sequence"]) is not None:
            self.slowdown.append(sequence["slowdown"])
            self.sjf.append(sequence["sjf"])
            self.guarded += sequence["guarded"]

    @property
    def relative(self) -> list[float]:
        """Slowdown of each finished sequence, relative to SJF."""
        return (np.array(self.slowdown) / np.array(self.sjf)).tolist()

    def json_values(self) -> dict[str, Any]:
        """The report for scripts: medians of the first and the latest sequences."""
        first, latest = self.relative[:RECENT], self.relative[-RECENT:]
        return {
            "decisions": self.decisions,
            "version": self.version,
            "guarded": self.guarded,
            "sequences": len(self.slowdown),
            "first": float(np.median(first)) if first else None,
            "latest": float(np.median(latest)) if latest else None,
        }


def learn_live(
    environment: Mapping[str, Any], decisions: int, buffer: int, out: Path, shown: Callable[[str, ClientReport], None]
) -> dict[str, ClientReport]:
    """Start the server and both clients, and wait until each has made so many decisions."""
    reports = {name: ClientReport() for name in CLIENTS}
    with ExitStack() as stack:
        address = stack.enter_context(_server(out))
        clients = {}
        for seed, name in enumerate(CLIENTS, 1):
            arguments = ["--server", address, "--name", name, "--seed", str(seed), "--decisions", str(decisions)]
            arguments += ["--buffer", str(buffer), "--environment", json.dumps(dict(environment))]
            command = ["-m", "examples.batch_scheduling.client", *arguments]
            clients[name] = stack.enter_context(_process(command, out / f"{name}.log"))
        threads = [
            threading.Thread(target=_follow, args=(name, client.stdout, reports[name], shown))
            for name, client in clients.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, client in clients.items():
            if client.wait() != 0:
                raise LiveFailed(f"{name} ended with code {client.returncode}; see {out / f'{name}.log'}.")
    return reports


def _follow(name: str, lines: IO[str] | None, report: ClientReport, shown: Callable[[str, ClientReport], None]) -> None:
    for line in lines or ():
        report.hear(line)
        shown(name, report)


@contextmanager
def _server(out: Path) -> Iterator[str]:
    command = ["-m", "rl4sys.cli", "serve", "--listen", "127.0.0.1:0", "--data", str(out / "server")]
    with _process(command, out / "server.log") as server:
        words = server.stdout.readline().split() if server.stdout else []
        if len(words) != 2:
            raise LiveFailed(f"The server did not start; see {out / 'server.log'}.")
        yield f"127.0.0.1:{words[1]}"


@contextmanager
def _process(arguments: list[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    """A Python process of this repository, which ends with the block."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=_TOP, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
