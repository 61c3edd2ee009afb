"""What a worker does, in a thread or a process: restore the learner, fold its log, save when asked to stop.

A worker process is forked by `fork_server_process`. It reads requests as JSON lines from one pipe, and writes events,
among them log lines, to another. When its host dies it exits at once, without saving: a new host may already have
started another worker.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import IO, Any, Protocol

import torch

from rl4sys.algorithms import UnsuitableActions, UnsuitableNetwork
from rl4sys.config import ConfigError
from rl4sys.networks import is_out_of_memory
from rl4sys.records import Record, RecordReader, RecordsDamaged, RecordsGone
from rl4sys.replay import UnsuitableBuffer
from rl4sys.server.learners.claims import is_unclaimed
from rl4sys.server.learners.held_data import DataHeld, ways_out
from rl4sys.server.learners.learner_commands import LearnerCommand
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.learners.operator_orders import OperatorOrders
from rl4sys.server.logs import send_logs_to_host, working_for
from rl4sys.server.workers.checkpoint_timer import CheckpointTimer
from rl4sys.server.workers.events import Event, Failed, Held, Refused, Resolved, Sized, Stopped, write_event
from rl4sys.server.workers.fold import Fold
from rl4sys.server.workers.folded_commands import REFUSALS, check
from rl4sys.server.workers.learner_config import canonical, load_learner_plugins, resolve
from rl4sys.server.workers.learner_limits import NO_OPTIONS, Limit, LimitExceeded, WorkerOptions
from rl4sys.server.workers.limit_check import learner_cost, limit_memory, require_within
from rl4sys.server.workers.worker_lock import PredecessorLives, folding_alone

_log = logging.getLogger(__name__)

_BATCH_BYTES = 64 << 10
"""Records read at once: few, so that the host often receives progress."""
_PROGRESS_SECONDS = 0.02
"""The shortest time between two progress events, which would otherwise follow every push."""
_IDLE_SECONDS = 0.25
"""Every commit nudges the worker; this is for a nudge that was lost with its sender."""
_HOST_IS_GONE = 3
_MAX_PROCESS_NAME = 15
"""Characters of a process name that Linux keeps."""


class LogReader(Protocol):
    """The log of a learner, as its worker reads it."""

    position: int
    """The number of the next record."""

    def committed(self) -> int:
        """The end of the records that may be read."""

    def read(self, limit_bytes: int) -> list[Record]:
        """The next records, as many as there are within the limit."""

    def sync(self) -> None:
        """Wait until the records that were read are on the disk."""

    def close(self) -> None:
        """Release what is open."""


class WorkerControl:
    """How the host signals a worker."""

    def __init__(self, *, is_paused: bool = False) -> None:
        self._wake = threading.Event()
        self._stop = threading.Event()
        self.is_paused = is_paused
        """Whether it has to wait with the records of its log."""
        self._room = threading.Event()

    def nudge(self) -> None:
        """There are new records."""
        self._wake.set()

    def pause(self, is_paused: bool) -> None:
        """Stop folding, or continue."""
        self.is_paused = is_paused
        self._wake.set()

    def make_room(self) -> None:
        """Save a checkpoint, so that the log before it can be removed."""
        self._room.set()
        self._wake.set()

    def takes_room_request(self) -> bool:
        """Whether room was asked for since the last call."""
        is_asked = self._room.is_set()
        self._room.clear()
        return is_asked

    def stop(self) -> None:
        """Save and exit."""
        self._stop.set()
        self._wake.set()

    def is_stopping(self) -> bool:
        """Whether the worker was asked to stop."""
        return self._stop.is_set()

    def wait(self, seconds: float = _IDLE_SECONDS) -> bool:
        """Wait for a nudge, at most this long; whether one came, now or before."""
        is_nudged = self._wake.wait(seconds)
        self._wake.clear()
        return is_nudged


def main(requests: int, events: int, directory: Path, log_level: int, options: WorkerOptions = NO_OPTIONS) -> None:
    """Run a worker process until it is asked to stop."""
    # What `top` shows.
    Path("/proc/self/comm").write_text(f"rl4sys {directory.name}"[:_MAX_PROCESS_NAME])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ignore)
    # Before the first request is read: one that comes later than the file was written may contradict it.
    control = WorkerControl(is_paused=OperatorOrders(directory).is_paused)
    outgoing, writing = os.fdopen(events, "wb"), threading.Lock()

    def send(event: Event) -> None:
        with writing:
            try:
                write_event(outgoing, event)
            except BrokenPipeError:
                os._exit(_HOST_IS_GONE)

    send_logs_to_host(send, log_level)
    if options.memory is not None:
        limit_memory(options.memory)
    try:
        load_learner_plugins(options.plugins)
    except ConfigError as error:
        send(Failed(str(error), 0, is_own=True))
        return
    incoming = os.fdopen(requests, "r")
    threading.Thread(target=_obey, args=(directory, incoming, control, send), name="requests", daemon=True).start()
    work(directory, None, control, send, options)


def work(
    directory: Path,
    open_log: Callable[[], LogReader] | None,
    control: WorkerControl,
    send: Callable[[Event], None],
    options: WorkerOptions = NO_OPTIONS,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Fold until asked to stop. The last event says how it ended, whatever went wrong.

    `open_log` opens another log than the one in the directory: that of a machine elsewhere, or one in memory.
    """
    with working_for(directory.name):
        _work(directory, open_log, control, send, options, clock)


def _work(
    directory: Path,
    open_log: Callable[[], LogReader] | None,
    control: WorkerControl,
    send: Callable[[Event], None],
    options: WorkerOptions,
    clock: Callable[[], float],
) -> None:
    position, is_new = 0, False
    timer = CheckpointTimer(options.checkpoint_seconds)
    try:
        with folding_alone(directory, control):
            reader: LogReader = RecordReader(directory / "log") if open_log is None else open_log()
            try:
                # A fork has records, and is new nevertheless.
                is_new = not reader.committed() or is_unclaimed(directory)
                _require_limits(directory, options, send, is_new=is_new)
                fold = Fold(directory, reader.committed(), send, before_save=reader.sync)
                reader.position = position = fold.position
                # Each thread has its own number, so learners in one process do not disturb each other.
                torch.set_num_threads(fold.threads)
                # Before the host receives weights: without its checkpoint, a learner whose log was pruned has none.
                records = deque(reader.read(_BATCH_BYTES))
                send(fold.ready())
                is_new = False
                sent_at, is_sent = clock(), True
                while not control.is_stopping():
                    is_idle = not records or control.is_paused
                    while records and not (control.is_stopping() or control.is_paused):
                        record = records.popleft()
                        position, is_sent = record.number, False
                        fold.take(record)
                        fold.save_if_due(timer, clock())
                        if clock() - sent_at >= _PROGRESS_SECONDS:
                            # The host paces the clients by what waits, so it has to know that early.
                            break
                    fold.save_if_due(timer, clock())
                    if control.takes_room_request():
                        fold.make_room()
                    if not is_sent and clock() - sent_at >= _PROGRESS_SECONDS:
                        send(fold.progress())
                        sent_at, is_sent = clock(), True
                    if is_idle and control.wait(_IDLE_SECONDS if is_sent else _PROGRESS_SECONDS):
                        # Every nudge is answered, since the host sends no second one before that.
                        is_sent = False
                    if not records:
                        records.extend(reader.read(_BATCH_BYTES))
                send(fold.progress())
                fold.save()
                fold.close()
            finally:
                reader.close()
        send(Stopped())
    except LimitExceeded as error:
        send(Refused(str(error), is_limit=True))
    except (ConfigError, UnsuitableActions, UnsuitableBuffer, UnsuitableNetwork) as error:
        send(Refused(str(error)))
    except DataHeld as error:
        send(Held(str(error)))
    except RecordsDamaged as error:
        send(Held(f"{error} {ways_out(directory)}"))
    except RecordsGone as error:
        problem = "Those records were learned from and then removed, and no readable checkpoint covers them."
        send(Held(f"{error} {problem} {ways_out(directory)}"))
    except Exception as error:
        _log.exception("The worker of %s failed.", directory.name)
        if is_new and options.memory is not None and is_out_of_memory(error):
            send(Refused(_described(error, options.memory), is_limit=True))
        else:
            send(Failed(_described(error, options.memory), position, is_own=not _may_pass(error, options.memory)))


def _require_limits(directory: Path, options: WorkerOptions, send: Callable[[Event], None], *, is_new: bool) -> None:
    """Report what the learner takes, and refuse a new one that takes too much, before anything is allocated."""
    setup = LearnerSetup.read(directory)
    config = resolve(setup.algorithm, setup.parameters)
    cost = learner_cost(config, setup)
    if is_new:
        require_within(options.limits, config, cost)
    send(Sized(*cost))


def _described(error: Exception, memory: Limit | None) -> str:
    """An error for people; one about memory names the limit."""
    problem = f"{type(error).__name__}: {error}"
    if memory is None or not is_out_of_memory(error):
        return problem
    return f"{problem} The memory of a worker is limited to {memory.most:,.0f} bytes by {memory.key} of this server."


def _may_pass(error: Exception, memory: Limit | None) -> bool:
    """Whether an error comes from the machine or from another process, and may be gone the next time."""
    is_of_machine = isinstance(error, OSError | PredecessorLives) or is_out_of_memory(error)
    return is_of_machine and (memory is None or not is_out_of_memory(error))


def _obey(directory: Path, incoming: IO[str], control: WorkerControl, send: Callable[[Event], None]) -> None:
    """Carry out the host's requests until its end of the pipe closes."""
    for line in incoming:
        obey(json.loads(line), directory, control, send)
    if not control.is_stopping():
        os._exit(_HOST_IS_GONE)


def obey(request: Mapping[str, Any], directory: Path, control: WorkerControl, send: Callable[[Event], None]) -> None:
    """Carry out one request of the host."""
    match request:
        case {"nudge": _}:
            control.nudge()
        case {"make_room": _}:
            control.make_room()
        case {"stop": _}:
            control.stop()
        case {"pause": bool(is_paused)}:
            control.pause(is_paused)
        case {"resolve": number, "algorithm": algorithm, "parameters": parameters}:
            send(_resolved(number, algorithm, parameters))
        case {"resolve": number, "check": file, "settings": settings}:
            send(_checked(number, directory, settings, Path(file)))


def _checked(number: int, directory: Path, settings: str, file: Path) -> Resolved:
    try:
        return Resolved(number, check(directory, settings, LearnerCommand.decode(file.read_bytes())), "")
    except REFUSALS as error:
        return Resolved(number, "", str(error))
    except OSError as error:
        return Resolved(number, "", f"The command could not be read by the worker: {error}")


def _resolved(number: int, algorithm: str, parameters: dict[str, object]) -> Resolved:
    try:
        return Resolved(number, canonical(resolve(algorithm, parameters)), "")
    except ConfigError as error:
        return Resolved(number, "", str(error))


def _ignore(number: int, frame: FrameType | None) -> None:
    """Ignore a signal: Ctrl-C reaches host and worker, and the host decides."""
