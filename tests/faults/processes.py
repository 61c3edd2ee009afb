"""A real server with its workers, and real clients, as processes that a test may kill and start again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.server.clients import eventually
from tests.server.loopback import StubTransport

from rl4sys.records import DiskOutbox, fresh_epoch
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import status_pb2

ROOT = Path(__file__).parents[2]
PER_START = 50_000
"""How many numbers each start of a client may use."""


class Server:
    """`rl4sys serve` on a port of its own, the same after every start."""

    def __init__(
        self, place: Path, *options: str, environment: Mapping[str, str] | None = None, port: int | None = None
    ) -> None:
        self.data = place / "data"
        self.port = port or free_port()
        self._log = (place / "server.log").open("ab")
        self._options = options
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self.transport = StubTransport(self.port)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def start(self) -> None:
        """Start it and wait until it serves."""
        command = [sys.executable, "-m", "rl4sys.cli", "serve", "--listen", self.address, "--data", str(self.data)]
        self._process = subprocess.Popen(
            [*command, *self._options], stdout=subprocess.PIPE, stderr=self._log, cwd=ROOT, env=self._environment
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith(b"serving"), f"the server said {line!r}; see {self._log.name}"

    def kill(self) -> None:
        self.process.kill()
        self._gone()

    def terminate(self, seconds: float) -> int:
        """Ask it to drain; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(seconds)
        return self._gone()

    def _gone(self) -> int:
        code = self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._process = None
        return code

    def workers(self) -> list[int]:
        """The worker processes, without the fork server."""
        return [worker for maker in self.fork_servers() for worker in _children(maker)]

    def fork_servers(self) -> list[int]:
        """The process that workers are forked from, if it runs."""
        return _children(self.process.pid)

    def learner(self, name: str) -> status_pb2.LearnerStatus:
        (status,) = self.transport.status(status_pb2.StatusRequest(learner=name), 10.0).learners
        return status

    def has_learned(self, name: str) -> bool:
        """Whether everything that is stored was learned from."""
        try:
            status = self.learner(name)
        except CallFailed:
            return False
        # Versions of a log that is folded again are published when it has caught up.
        is_folding_again = status.HasField("refolded_version")
        return status.state == status_pb2.LEARNER_STATE_WAITING and not status.queued_segments and not is_folding_again

    def close(self) -> None:
        """Kill all its processes."""
        if self._process is not None:
            workers = self.workers()
            self.kill()
            # Workers exit by themselves when their host is gone.
            eventually(lambda: not any(map(_lives, workers)), 120.0)
        self.transport.close()
        self._log.close()


def _children(process: int) -> list[int]:
    """The running children of a process."""
    try:
        tasks = [task / "children" for task in Path(f"/proc/{process}/task").iterdir()]
        return [int(child) for task in tasks for child in task.read_text().split() if _lives(int(child))]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _lives(process: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Client:
    """`tests.faults.storming_client` under one name; every start uses the outbox of the last one."""

    def __init__(
        self, place: Path, address: str, name: str, learner: str, pause: float, outbox_bytes: int = 64 << 20
    ) -> None:
        self.name, self.learner, self.pause = name, learner, pause
        self.outbox, self.acknowledged = place / f"{name} outbox", place / f"{name} acknowledged"
        self.settings = place / f"{name}.json"
        values = {"client_id": name, "policy_id": learner, "server": address, "outbox": str(self.outbox)}
        values["cache"] = str(place / f"{name}.policy")
        values |= {"observation": 3, "action": 2, "timeout": 300, "reward_window": 0, "outbox_bytes": outbox_bytes}
        self.settings.write_text(json.dumps(values))
        self.starts = 0
        self.left: set[tuple[int, int]] = set()
        """Parcels found in its outbox after kills."""
        self._log = (place / f"{name}.log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def start(self, *wrapper: str) -> None:
        """Start it, within the command of the wrapper if there is one."""
        first, self.starts = PER_START * self.starts, self.starts + 1
        arguments = [str(self.settings), str(self.acknowledged), str(first), str(self.pause)]
        self._process = subprocess.Popen(
            [*wrapper, sys.executable, "-m", "tests.faults.storming_client", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
        self._process = None
        if self.outbox.is_dir():
            box = DiskOutbox(self.outbox, fresh_epoch())
            self.left |= {(parcel.epoch, number) for parcel in box.unsettled() for number in parcel.sequences}
            box.close()

    def finish(self, flush: float = 300.0) -> dict[str, Any]:
        """Let it flush for so many seconds, and exit; returns its last output."""
        out, _ = self.process.communicate(f"{flush}\n".encode(), timeout=400)
        self._process = None
        told: dict[str, Any] = json.loads(out)
        return told

    @property
    def told_bytes(self) -> int:
        """Grows with every acknowledgement."""
        return self.acknowledged.stat().st_size if self.acknowledged.exists() else 0

    def told(self) -> set[tuple[int, int]]:
        """Everything that the server ever acknowledged to it."""
        if not self.acknowledged.exists():
            return set()
        lines = self.acknowledged.read_text().splitlines(keepends=True)
        parts = [tuple(map(int, line.split())) for line in lines if line.endswith("\n")]
        return {(epoch, sequence) for epoch, first, last in parts for sequence in range(first, last + 1)}

    def versions(self) -> list[list[int]]:
        """The versions that it acted with, one after the other, for each of its starts.

        A start without a server begins with the policy cache, which may be a few seconds older than the last version.
        """
        path = self.acknowledged.with_suffix(".versions")
        starts = path.read_text().split("start\n")[1:] if path.exists() else []
        return [[int(line) for line in start.splitlines()] for start in starts]

    @property
    def version(self) -> int:
        """The version that it acted with last; 0 if it has not acted since its start."""
        starts = self.versions()
        return starts[-1][-1] if starts and starts[-1] else 0

    def close(self) -> None:
        if self._process is not None:
            self.kill()
        self._log.close()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
