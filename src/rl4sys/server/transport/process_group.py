"""A server in several processes, for one machine with more clients than one process can serve.

Each is a whole server with its own port, its own part of the learners and its own data directory, so nothing is passed
from one to another. This process starts them, starts them again when they die, and passes signals on.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rl4sys.server.divided_data import divide, process_directory
from rl4sys.server.options import ImpossibleSetup
from rl4sys.server.process_part import ProcessPart
from rl4sys.server.transport.addresses import require_available
from rl4sys.server.transport.grpc_server import ServerOptions
from rl4sys.server.transport.signals import ServerSignals
from rl4sys.wire.addresses import host_and_port

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
_RESTART_SECONDS = 1.0
_LARGEST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """One process: its part, where it listens, and its data."""

    part: ProcessPart
    listen: str
    arguments: tuple[str, ...]
    """Options of its command that are not the same for all."""


def plan_processes(options: ServerOptions, count: int) -> list[ProcessPlan]:
    """What each process is given. Raises `ImpossibleSetup` if the ports do not suffice."""
    found = None if options.listen.startswith("unix:") else host_and_port(options.listen)
    if found is None or found[1] == 0 or found[1] + count - 1 > _LARGEST_PORT:
        raise ImpossibleSetup(
            f"--processes {count} needs --listen HOST:PORT with a port that {count - 1} free ones follow "
            f"(got {options.listen})."
        )
    host, first = options.listen.rpartition(":")[0], found[1]
    server = f"{host}:{first}-{first + count - 1}"
    plans = []
    for number in range(count):
        data = process_directory(options.data, number, count)
        listen = f"{host}:{first + number}"
        own = {"--listen": listen, "--data": str(data)}
        if options.metrics_port:
            own["--metrics-port"] = str(options.metrics_port + number)
        if options.metrics_listen is not None:
            metrics_host, _, port = options.metrics_listen.rpartition(":")
            own["--metrics-listen"] = f"{metrics_host}:{int(port) + number}"
        part = ProcessPart(number, count, server)
        words = [word for option, value in own.items() for word in (option, value)]
        plans.append(ProcessPlan(part, listen, (*words, "--part", str(part))))
    return plans


class ServerProcess:
    """One process of a server, which is started again when it dies."""

    def __init__(
        self, plan: ProcessPlan, arguments: Sequence[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.plan, self._clock = plan, clock
        self._command = [sys.executable, "-m", "rl4sys.server", *arguments, *plan.arguments]
        self._start()

    def wait_until_serving(self) -> int | None:
        """Wait until it takes calls; its exit code if it has ended instead."""
        assert self._process.stdout is not None
        return None if self._process.stdout.readline().startswith(b"serving") else self._process.wait()

    def look(self) -> None:
        """Start it again if it died, but not all the time."""
        if self._process.poll() is not None and self._clock() - self._started_at >= _RESTART_SECONDS:
            _log.warning(
                "Process %d of the server ended with code %d and is started again.",
                *(self.plan.part.number, self._process.returncode),
            )
            self.close()
            self._start()

    def send_signal(self, number: int) -> None:
        """Pass a signal on."""
        self._process.send_signal(number)

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def close(self) -> None:
        """Wait until it has ended."""
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _start(self) -> None:
        self._started_at = self._clock()
        # It ends when its input does, also if this process is killed. Ctrl-C reaches this process alone.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )


def serve_in_processes(
    options: ServerOptions, count: int, arguments: Sequence[str], ready: Callable[[str], Any]
) -> int:
    """Serve until SIGTERM or SIGINT; for the main thread. Returns the exit code.

    `arguments` are the options of the command that all processes share; `ready` is called with the ports.
    """
    plans = plan_processes(options, count)
    for plan in plans:
        require_available(plan.listen)
    divide(options.data, count)
    with ServerSignals() as signals:
        processes = [ServerProcess(plan, arguments) for plan in plans]
        try:
            for process in processes:
                if (code := process.wait_until_serving()) is not None:
                    return code or 1
            _log.info("Serving on %s in %d processes, data in %s.", plans[0].part.server, count, options.data)
            ready(plans[0].part.server.rpartition(":")[2])
            while not signals.is_stopping:
                signals.wait(_LOOK_SECONDS)
                if signals.take_reload():
                    _send(processes, signal.SIGHUP)
                for process in processes:
                    process.look()
        finally:
            _end(processes, signals)
    return 0


def end_with_input() -> None:
    """In a process of a server: drain as soon as the process that started it is gone."""

    def wait() -> None:
        # Not through sys.stdin, whose lock this thread would still hold when the interpreter ends.
        while os.read(0, 1):
            continue
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="input", daemon=True).start()


def _send(processes: Sequence[ServerProcess], number: int) -> None:
    for process in processes:
        if process.is_running():
            process.send_signal(number)


def _end(processes: Sequence[ServerProcess], signals: ServerSignals) -> None:
    """Let all drain; at a second signal, without waiting for learners."""
    _send(processes, signal.SIGTERM)
    is_hurried = False
    while any(process.is_running() for process in processes):
        signals.wait(_LOOK_SECONDS)
        if signals.is_hurried and not is_hurried:
            is_hurried = True
            _send(processes, signal.SIGTERM)
    for process in processes:
        process.close()
