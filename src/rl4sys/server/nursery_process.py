"""Forks workers: `python -m rl4sys.server.nursery_process SOCKET`. Its host's side is `rl4sys.server.nursery`.

It has one thread and has computed nothing, so that a fork of it is as good as a fresh process. It leaves when its host
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

from rl4sys.server import worker
from rl4sys.server.nursery import LONGEST

_NICENESS = 5
"""Whoever shares the machine goes first: a live system, and the server that acknowledges its experience."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker has to know."""

    requests: int
    events: int
    directory: Path
    level: int
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """A worker that lives, by the handle on its process, and the line on which the host hears of it."""

    pid: int
    handle: int
    line: socket.socket

    def close(self) -> None:
        """Forget it."""
        os.close(self.handle)
        self.line.close()


def next_order(host: socket.socket) -> Order | None:
    """Fork for each order, and return it in the child; None in the parent, when there are no more."""
    ready = selectors.DefaultSelector()
    ready.register(host, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if isinstance(key.data, Made):
                ready.unregister(key.fileobj)
                _tell_end(key.data)
                continue
            words, handles, _, _ = socket.recv_fds(host, LONGEST, 3)
            if not words:
                return None
            made, order = _fork(words, handles)
            if order is not None:
                for other in list(ready.get_map().values()):
                    if isinstance(other.data, Made):
                        other.data.close()
                ready.close()
                host.close()
                return order
            if made is not None:
                ready.register(made.handle, selectors.EVENT_READ, made)


def _fork(words: bytes, handles: list[int]) -> tuple[Made | None, Order | None]:
    """Fork, and tell the host: what was made, in the parent; what to do, in the child."""
    requests, events, line = *handles[:2], socket.socket(fileno=handles[2])
    try:
        pid = os.fork()
    except OSError as error:
        with line, suppress(BrokenPipeError):
            line.send(json.dumps({"problem": str(error)}).encode())
        pid = -1
    if pid == 0:
        line.close()
        told = json.loads(words)
        return None, Order(requests, events, Path(told["directory"]), told["level"], tuple(told["plugins"]))
    os.close(requests)
    os.close(events)
    if pid < 0:
        return None, None
    made = Made(pid, os.pidfd_open(pid), line)
    with suppress(BrokenPipeError):
        socket.send_fds(line, [json.dumps({"pid": pid}).encode()], [made.handle])
    return made, None


def _tell_end(made: Made) -> None:
    _, status = os.waitpid(made.pid, 0)
    with suppress(BrokenPipeError):
        made.line.send(json.dumps({"code": os.waitstatus_to_exitcode(status)}).encode())
    made.close()


def main(host: socket.socket) -> None:
    """Make workers, or be one."""
    os.nice(_NICENESS)
    # What there is now stays for ever: not to be looked at, and so not to be copied, by every child.
    gc.freeze()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Ctrl-C reaches every process of a terminal; the host decides.
        signal.signal(number, signal.SIG_IGN)
    order = next_order(host)
    if order is not None:
        worker.main(order.requests, order.events, order.directory, order.level, order.plugins)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
