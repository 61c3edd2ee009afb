"""The fork server: `python -m rl4sys.server.workers.fork_server_process SOCKET`. Its host's side is `fork_server`.

It has one thread and has computed nothing, so that a fork of it is as good as a fresh process. It exits when its host
is gone; workers notice that by themselves.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rl4sys.server.workers import worker_main
from rl4sys.server.workers.fork_server import MAX_MESSAGE_BYTES
from rl4sys.server.workers.learner_limits import WorkerOptions

_NICENESS = 5
"""Lower priority than the live system on this machine, and than the server that acknowledges its experience."""


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """What a worker needs to know."""

    requests: int
    events: int
    directory: Path
    level: int
    options: WorkerOptions


@dataclass(frozen=True, slots=True)
class RunningChild:
    """A forked worker: its process, and the channel on which the host waits for its end."""

    pid: int
    pidfd: int
    channel: socket.socket

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self.pidfd)
        self.channel.close()


def next_request(host: socket.socket) -> ForkRequest | None:
    """Fork for each request, and return it in the child; None in the parent, once the host is gone."""
    ready = selectors.DefaultSelector()
    ready.register(host, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if isinstance(key.data, RunningChild):
                ready.unregister(key.fileobj)
                _report_exit(key.data)
                continue
            message, descriptors, _, _ = socket.recv_fds(host, MAX_MESSAGE_BYTES, 3)
            if not message:
                return None
            child, request = _fork(message, descriptors)
            if request is not None:
                for other in list(ready.get_map().values()):
                    if isinstance(other.data, RunningChild):
                        other.data.close()
                ready.close()
                host.close()
                return request
            if child is not None:
                ready.register(child.pidfd, selectors.EVENT_READ, child)


def _fork(message: bytes, descriptors: list[int]) -> tuple[RunningChild | None, ForkRequest | None]:
    """Fork, and report it to the host. Returns the child in the parent, and the request in the child."""
    requests, events, channel = *descriptors[:2], socket.socket(fileno=descriptors[2])
    try:
        pid = os.fork()
    except OSError as error:
        with channel, suppress(BrokenPipeError):
            channel.send(json.dumps({"problem": str(error)}).encode())
        pid = -1
    if pid == 0:
        channel.close()
        values = json.loads(message)
        options = WorkerOptions.from_json(values["options"])
        return None, ForkRequest(requests, events, Path(values["directory"]), values["level"], options)
    os.close(requests)
    os.close(events)
    if pid < 0:
        return None, None
    child = RunningChild(pid, os.pidfd_open(pid), channel)
    with suppress(BrokenPipeError):
        socket.send_fds(channel, [json.dumps({"pid": pid}).encode()], [child.pidfd])
    return child, None


def _report_exit(child: RunningChild) -> None:
    _, status = os.waitpid(child.pid, 0)
    with suppress(BrokenPipeError):
        child.channel.send(json.dumps({"code": os.waitstatus_to_exitcode(status)}).encode())
    child.close()


def main(host: socket.socket) -> None:
    """Fork workers; in a forked child, be one."""
    os.nice(_NICENESS)
    # Objects that exist now are never collected: children need not touch, and so not copy, their pages.
    gc.freeze()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Ctrl-C reaches every process of a terminal; the host decides.
        signal.signal(number, signal.SIG_IGN)
    request = next_request(host)
    if request is not None:
        worker_main.main(request.requests, request.events, request.directory, request.level, request.options)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
