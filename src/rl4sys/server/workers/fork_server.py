"""The host's side of the fork server: a process that has imported torch, and forks the worker processes.

Importing torch takes seconds and most of the memory of a worker. This way a server pays for it once, and its workers
share the pages that they do not change.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rl4sys.server.workers.learner_limits import WorkerOptions

_MODULE = "rl4sys.server.workers.fork_server_process"
MAX_MESSAGE_BYTES = 1 << 17
"""Of a request: at most two paths, and the plug-ins."""


class ForkedWorker:
    """A worker process that was requested; it may not have started yet."""

    def __init__(self, fork_server: ForkServer, channel: socket.socket) -> None:
        self._fork_server, self._channel = fork_server, channel
        self._known = threading.Lock()
        self._pidfd: int | None = None
        self.pid: int | None = None
        """Once it has started."""

    def wait_for_start(self) -> None:
        """Wait until it has started; raises `OSError` if it could not."""
        message, descriptors, _, _ = socket.recv_fds(self._channel, MAX_MESSAGE_BYTES, 1)
        answer: dict[str, Any] = json.loads(message or '{"problem": "the fork server has ended"}')
        if problem := answer.get("problem"):
            raise OSError(problem)
        with self._known:
            (self._pidfd,), self.pid = descriptors, answer["pid"]

    def wait_for_exit(self) -> int | None:
        """Wait until it has ended; its exit code, or None if the fork server ended before it."""
        assert self._pidfd is not None
        ended = select.poll()
        ended.register(self._pidfd, select.POLLIN)
        ended.poll()
        message = self._channel.recv(MAX_MESSAGE_BYTES)
        return json.loads(message)["code"] if message else None

    def kill(self) -> None:
        """Kill it. If it has not started yet, the fork server is killed instead; other workers outlive that."""
        with self._known:
            if self._pidfd is None:
                self._fork_server.kill()
                return
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        """Release a process that has ended."""
        with self._known:
            if self._pidfd is not None:
                os.close(self._pidfd)
                self._pidfd = None
        self._channel.close()


class ForkServer:
    """Starts the fork server with the first request, and again if it died. It ends with its host."""

    def __init__(self, *command: str) -> None:
        """`command` are a module and its arguments; without one, the process that forks workers."""
        self._command = command or (_MODULE,)
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self, requests: int, events: int, directory: Path, level: int, options: WorkerOptions) -> ForkedWorker:
        """Request a worker that uses these ends of pipes, which also stay open here. Does not wait for its start."""
        message = {"directory": str(directory), "level": level, "options": options.to_json()}
        return ForkedWorker(self, self.request(message, requests, events))

    def request(self, values: Mapping[str, Any], *shared: int) -> socket.socket:
        """Send a request with open files; returns the channel on which the process answers."""
        message = json.dumps(values).encode()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with self._lock, theirs:
                descriptors = [*shared, theirs.fileno()]
                try:
                    socket.send_fds(self._started(), [message], descriptors)
                except (BrokenPipeError, ConnectionResetError):
                    self._kill()
                    socket.send_fds(self._started(), [message], descriptors)
        except OSError:
            ours.close()
            raise
        return ours

    def kill(self) -> None:
        """Kill the fork server, which has nothing to lose; its workers keep running."""
        with self._lock:
            self._kill()

    def _started(self) -> socket.socket:
        if self._channel is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", *self._command, str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    # Learners share the machine: each computes with as many threads as its config says.
                    env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                )
            self._channel = ours
        return self._channel

    def _kill(self) -> None:
        if self._channel is not None and self._process is not None:
            self._channel.close()
            self._process.kill()
            self._process.wait()
            self._channel = self._process = None
