"""The programs of the C++ build that tests run, and a server for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.programs import Program

from rl4sys.records import RecordReader
from rl4sys.server.learners.stored_segments import StoredSegment

ROOT = Path(__file__).parents[2]
_PLACES = ("release", "debug", "asan", "tsan")


def find_tool() -> Path | None:
    """`rl4sys_tool` of the build that the environment names, else of the first preset that was built."""
    named = os.environ.get("RL4SYS_CPP_BUILD")
    builds = [Path(named)] if named else [ROOT / "cpp" / "build" / place for place in _PLACES]
    tools = [build / "tests" / "client" / "rl4sys_tool" for build in builds]
    return next((tool for tool in tools if tool.is_file()), None)


needs_cpp = pytest.mark.skipif(
    find_tool() is None,
    reason="the C++ client is not built: cmake --preset release && cmake --build --preset release, in cpp/",
)


def attempt(*arguments: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run the tool without checking its exit code."""
    command = [str(find_tool()), *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=180, check=False)


def tool(*arguments: str | Path, given: str = "") -> str:
    """The output of the tool; fails with its error output."""
    done = attempt(*arguments, given=given)
    assert done.returncode == 0, f"{done.args} ended with {done.returncode}: {done.stderr}"
    return done.stdout


@contextmanager
def running(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Run the tool in the background, and end it afterwards."""
    command = [str(find_tool()), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


class AskedClient:
    """A C++ client that takes as many decisions as it is asked for."""

    def __init__(self, config: Path) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([str(find_tool()), "run-asked", str(config)], **pipes)  # type: ignore[call-overload]

    def __enter__(self) -> AskedClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def decide(self, count: int) -> dict[str, Any]:
        """Its next decisions, and the version it has then; step k observes what `observed(k)` returns."""
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


def observed(step: int) -> list[float]:
    """What `AskedClient` observes."""
    return [step % 7 / 8.0, step % 5 / 4.0]


class Server:
    """`rl4sys serve` on a loopback port that stays the same after a restart."""

    def __init__(self, place: Path, *options: str) -> None:
        self.data = place / "data"
        self.port = 0
        self._options = options
        self._process: Program | None = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start and wait until it serves."""
        listen = f"127.0.0.1:{self.port}"
        command = ["serve", "--listen", listen, "--data", str(self.data), "--workers", "threads", *self._options]
        self._process = Program("rl4sys.cli", *command)
        line = self._process.first_line()
        assert line.startswith("serving"), line
        self.port = int(line.split()[1])

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop or kill the server, and wait for its end."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(timeout=60)

    def entries(self) -> list[StoredSegment]:
        """The segments in the log of its only learner, in order."""
        (log,) = self.data.glob("learners/*/log")
        reader = RecordReader(log)
        try:
            found: list[StoredSegment] = []
            while records := reader.read():
                found += [alone for record in records for alone in StoredSegment.decode(record.payload).alone()]
            return found
        finally:
            reader.close()


def write_config(path: Path, server: Server, **settings: Any) -> Path:
    """A client of two numbers and two choices, whose learner updates after 200 steps."""
    config = {
        "client_id": "cpp",
        "server": f"127.0.0.1:{server.port}",
        "policy_id": "shared",
        "algorithm": {"name": "ppo", "epochs": 1, "minibatch_size": 50},
        "buffer": {"size": 200},
        "network": {"actor": {"hidden_dims": [8]}, "critic": {"hidden_dims": [8]}},
        "observation": 2,
        "action": 2,
        "timeout": 60,
        "send_interval": 0.01,
        "seed": 1,
    }
    path.write_text(json.dumps(config | settings))
    return path
