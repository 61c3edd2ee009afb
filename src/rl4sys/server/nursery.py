"""Where the processes of learners come from: another process, which has torch imported and forks.

To import torch takes seconds of computing and most of the memory of a worker. This way a server pays for it once, and
its learners share what they do not change.
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
from contextlib import suppress
from pathlib import Path
from typing import Any

LONGEST = 1 << 17
"""Bytes of an order: two paths at most, and the plug-ins."""


class Child:
    """A process that the nursery was asked for: it may not have begun yet."""

    def __init__(self, nursery: Nursery, line: socket.socket) -> None:
        self._nursery, self._line = nursery, line
        self._known = threading.Lock()
        self._handle: int | None = None
        self.pid: int | None = None
        """Once it has begun."""

    def begin(self) -> None:
        """Wait until it has begun; raises `OSError` if it could not."""
        message, handles, _, _ = socket.recv_fds(self._line, LONGEST, 1)
        told: dict[str, Any] = json.loads(message or '{"problem": "the process that makes them has ended"}')
        if problem := told.get("problem"):
            raise OSError(problem)
        with self._known:
            (self._handle,), self.pid = handles, told["pid"]

    def code(self) -> int | None:
        """Wait until it has ended; its exit code, if anybody is left to tell."""
        assert self._handle is not None
        ended = select.poll()
        ended.register(self._handle, select.POLLIN)
        ended.poll()
        message = self._line.recv(LONGEST)
        return json.loads(message)["code"] if message else None

    def kill(self) -> None:
        """End it, whatever it does. One that never began takes the nursery with it, which others outlive."""
        with self._known:
            if self._handle is None:
                self._nursery.kill()
                return
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def close(self) -> None:
        """Let go of a process that has ended."""
        with self._known:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None
        self._line.close()


class Nursery:
    """The host's side. The process starts with the first order, starts again if it is gone, and ends with its host."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def order(self, requests: int, events: int, directory: Path, level: int, plugins: tuple[str, ...]) -> Child:
        """A worker that reads and writes these ends of pipes, which stay open here. Does not wait for it."""
        words = json.dumps({"directory": str(directory), "level": level, "plugins": plugins}).encode()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with self._lock, theirs:
                handles = [requests, events, theirs.fileno()]
                try:
                    socket.send_fds(self._started(), [words], handles)
                except (BrokenPipeError, ConnectionResetError):
                    self._kill()
                    socket.send_fds(self._started(), [words], handles)
        except OSError:
            ours.close()
            raise
        return Child(self, ours)

    def kill(self) -> None:
        """End the process, which has nothing to lose; those that it made go on."""
        with self._lock:
            self._kill()

    def _started(self) -> socket.socket:
        if self._line is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "rl4sys.server.nursery_process", str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    # Learners share the machine: each computes with as many threads as its config says.
                    env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                )
            self._line = ours
        return self._line

    def _kill(self) -> None:
        if self._line is not None and self._process is not None:
            self._line.close()
            self._process.kill()
            self._process.wait()
            self._line = self._process = None
