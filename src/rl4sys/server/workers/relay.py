"""Connects a learner at its host with its worker on another machine.

The log and the checkpoints stay here. The worker gets the newest checkpoint and the records after it; what it saves is
stored here before the host hears of it. Whatever becomes of that machine, another worker begins from the same files.
"""

from __future__ import annotations

import json
import logging
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rl4sys.checkpoints import CheckpointDamaged, Checkpoints
from rl4sys.config.plugin_copies import plugin_texts
from rl4sys.records import Record, RecordReader, RecordsDamaged, RecordsGone
from rl4sys.server.learners.claims import is_unclaimed
from rl4sys.server.learners.held_data import (
    KEPT_CHECKPOINTS,
    DataHeld,
    newest_sound_checkpoint,
    require_whole,
    ways_out,
)
from rl4sys.server.learners.operator_orders import OperatorOrders
from rl4sys.server.workers.events import (
    Commanded,
    Event,
    Failed,
    FilePart,
    Held,
    LastEvent,
    LearnerProgress,
    Logged,
    Ready,
    Saved,
    write_event,
)
from rl4sys.server.workers.learner_limits import WorkerOptions
from rl4sys.server.workers.received_files import ReceivedFiles
from rl4sys.server.workers.remote_worker import describe_machine
from rl4sys.server.workers.sent_events import decode_events
from rl4sys.server.workers.sent_files import checkpoint_files, parts_of
from rl4sys.server.workers.sent_records import encode_records
from rl4sys.server.workers.worker_lock import folding_alone

_BATCH_BYTES = 256 << 10
_MOST_UNFOLDED_BYTES = 4 << 20
"""Bytes of records that the worker may have besides those it has folded."""
_EVENTS_SECONDS = 1.0
_IDLE_SECONDS = 0.25
_LONG_SECONDS = 15.0
_LONG_START = "The worker has not started yet: no node of the cluster has room for it, or it is being started there."
_SAME = ("rl4sys", "python", "torch")


class RemoteLost(Exception):
    """The worker, or its machine, is gone; says how."""


class Remote(Protocol):
    """A `RemoteWorker` on another machine."""

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method and wait for its reply; raises `RemoteLost`. Any thread may call."""

    def close(self) -> None:
        """End it, and whatever waits for it."""


class RelayOrder(NamedTuple):
    """What the host asks for."""

    directory: Path
    level: int
    options: WorkerOptions


class Relay:
    """One worker, from its start to its end. `run` returns when it has ended; `kill` makes that soon."""

    def __init__(self, order: RelayOrder, requests: int, events: int, make: Callable[[str], Remote]) -> None:
        """`requests` and `events` are the ends of pipes of a worker process; `make` starts a worker from its order."""
        self._directory, self._order, self._make = order.directory, order, make
        self._requests, self._events = os.fdopen(requests, "rb", buffering=0), os.fdopen(events, "wb")
        self._sending = threading.Lock()
        self._wake, self._woken = os.pipe()
        self._waking, self._is_closed = threading.Lock(), False
        self._sender: threading.Thread | None = None
        self._reading = threading.Lock()
        """Held while the log is read, or synced."""
        self._reader: RecordReader | None = None
        self._remote: Remote | None = None
        self._files = ReceivedFiles(order.directory)
        self._unfolded: deque[tuple[int, int]] = deque()
        """Numbers and lengths of records that were sent and are not folded."""
        self._is_ended = threading.Event()
        self._damage: Exception | None = None
        """What is wrong with the log, found while it was read."""
        self._storage_problem = ""

    def run(self) -> None:
        """Fold with a worker elsewhere until it ends. The last event says how, unless the host was gone before."""
        last: Event
        try:
            with folding_alone(self._directory, self):
                last = self._run()
        except DataHeld as error:
            last = Held(str(error))
        except RecordsDamaged as error:
            last = Held(f"{error} {ways_out(self._directory)}")
        except RecordsGone as error:
            problem = "Those records were learned from and then removed, and no readable checkpoint covers them."
            last = Held(f"{error} {problem} {ways_out(self._directory)}")
        except RemoteLost as error:
            last = Failed(str(error))
        except Exception as error:  # reported, so that the host starts another worker
            last = Failed(f"{type(error).__name__}: {error}")
        self._send(last)
        self._close()

    def kill(self) -> None:
        """End the worker at once."""
        self._is_ended.set()
        self._wake_up()
        if self._remote is not None:
            self._remote.close()

    def is_stopping(self) -> bool:
        """Whether it was killed."""
        return self._is_ended.is_set()

    def wait(self) -> None:
        """Wait for a moment, or until it is killed."""
        self._is_ended.wait(_IDLE_SECONDS)

    def _run(self) -> Event:
        Checkpoints(self._directory / "checkpoints", KEPT_CHECKPOINTS).tidy()
        self._reader = reader = RecordReader(self._directory / "log")
        committed = reader.committed()
        require_whole(self._directory, committed)
        step = newest_sound_checkpoint(self._directory, committed)
        reader.position = step or 0
        # Before a worker is started: without its checkpoint, a learner whose log was pruned has none.
        records = reader.read(_BATCH_BYTES)
        self._remote = remote = self._make(self._describe())
        warning = threading.Timer(_LONG_SECONDS, self._log, (_LONG_START,))
        warning.daemon = True
        warning.start()
        if self._is_ended.is_set():
            remote.close()
        try:
            machine = self._begin(remote, step, committed)
        finally:
            warning.cancel()
        self._sender = threading.Thread(
            target=self._forward, args=(records,), name=f"sends {self._directory.name}", daemon=True
        )
        self._sender.start()
        while True:
            for event in decode_events(self._call("events", _EVENTS_SECONDS)):
                if isinstance(event, LastEvent):
                    return event
                self._take(event, machine)

    def _begin(self, remote: Remote, step: int | None, committed: int) -> str:
        """Give the worker its checkpoint and let it begin; returns the name of its machine."""
        if step is not None:
            for name in [name for names in checkpoint_files(self._directory, step) for name in names]:
                for part in parts_of(self._directory, name):
                    remote.call("put_file", name, part.offset, part.blob)
        machine = json.loads(remote.call("start", step or 0, committed))
        _require_same(machine)
        return str(machine["host"])

    def _describe(self) -> str:
        """What a worker elsewhere is given, besides the files of a checkpoint."""
        options = self._order.options
        return json.dumps(
            {
                "learner": self._directory.name,
                "setup": (self._directory / "setup.json").read_text(),
                "is_unclaimed": is_unclaimed(self._directory),
                "is_paused": OperatorOrders(self._directory).is_paused,
                "level": self._order.level,
                "options": options.to_json(),
                "plugins": plugin_texts(options.plugins),
            }
        )

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call the worker; damage of the log that ended it is raised in its place."""
        assert self._remote is not None
        try:
            return self._remote.call(method, *arguments)
        except RemoteLost:
            if self._damage is not None:
                raise self._damage from None
            raise

    def _take(self, event: Event, host: str) -> None:
        """Store a file, or pass an event on; a checkpoint is announced once it is stored here."""
        match event:
            case FilePart():
                self._store_part(event)
            case Saved():
                self._store_checkpoint(event)
            case Ready():
                self._note_position(event.position)
                self._send(replace(event, device=f"{event.device} at {host}"))
            case LearnerProgress() | Commanded():
                self._note_position(event.position)
                self._send(event)
            case _:
                self._send(event)

    def _store_part(self, part: FilePart) -> None:
        if not self._storage_problem:
            try:
                self._files.take(part)
            except OSError as error:
                self._storage_problem = str(error)

    def _store_checkpoint(self, saved: Saved) -> None:
        try:
            if self._storage_problem:
                raise OSError(self._storage_problem)
            with self._reading:
                # The log must not end before a checkpoint, not even after a power cut.
                assert self._reader is not None
                self._reader.sync()
            oldest, names = self._files.store(saved.position)
        except (OSError, CheckpointDamaged) as error:
            # The log has everything a checkpoint would have: without one, only the next start is slower.
            self._log(f"A checkpoint could not be stored, and learning continues: {error}")
            self._files.forget()
            self._storage_problem = ""
            return
        self._call("request", json.dumps({"stored": names}), b"")
        # The worker asks for room by naming its newest checkpoint as the oldest that is needed.
        self._send(replace(saved, oldest=oldest if saved.oldest < saved.position else saved.position))

    def _log(self, message: str) -> None:
        self._send(Logged(time.time(), logging.WARNING, __name__, message))

    def _note_position(self, position: int) -> None:
        while self._unfolded and self._unfolded[0][0] < position:
            self._unfolded.popleft()
        self._wake_up()

    def _wake_up(self) -> None:
        """Let the thread that sends look again."""
        with self._waking:
            if not self._is_closed:
                os.write(self._woken, b"\n")

    def _forward(self, records: list[Record]) -> None:
        """Send requests of the host, and records as they come, in a thread of its own."""
        requests, pending = self._requests.fileno(), b""
        try:
            while not self._is_ended.is_set():
                if records:
                    self._unfolded.extend((record.number, len(record.payload)) for record in records)
                    self._call("take_records", encode_records(records))
                records = self._next_records()
                ready, _, _ = select.select([requests, self._wake], [], [], 0 if records else _IDLE_SECONDS)
                if self._wake in ready:
                    os.read(self._wake, 1 << 16)
                if requests in ready:
                    data = self._requests.read(1 << 16)
                    if not data:
                        # The host is gone, or does not want the worker any more.
                        self.kill()
                        return
                    *lines, pending = (pending + data).split(b"\n")
                    for line in lines:
                        self._pass_on(json.loads(line))
        except RemoteLost:
            # The thread that receives events reports it.
            return
        except Exception as error:  # damage of the log, or a failure of this machine
            self._damage = error
            self.kill()

    def _next_records(self) -> list[Record]:
        if sum(length for _, length in list(self._unfolded)) >= _MOST_UNFOLDED_BYTES:
            return []
        with self._reading:
            assert self._reader is not None
            return self._reader.read(_BATCH_BYTES)

    def _pass_on(self, request: Mapping[str, Any]) -> None:
        if "nudge" not in request:
            # The file of a command is here, and not where the worker is.
            data = Path(request["check"]).read_bytes() if "check" in request else b""
            self._call("request", json.dumps(request), data)

    def _send(self, event: Event) -> None:
        with self._sending:
            try:
                write_event(self._events, event)
            except (BrokenPipeError, ValueError):
                # The host is gone, which the thread that reads its requests notices.
                return

    def _close(self) -> None:
        self.kill()
        if self._sender is not None:
            self._sender.join()
        with self._waking:
            self._is_closed = True
            for end in (self._wake, self._woken):
                os.close(end)
        self._requests.close()
        if self._reader is not None:
            self._reader.close()
        with self._sending, suppress(BrokenPipeError):
            self._events.close()


def _require_same(machine: Mapping[str, Any]) -> None:
    here = json.loads(describe_machine())
    for name in _SAME:
        if machine[name] != here[name]:
            raise RemoteLost(
                f"{machine['host']} has {name} {machine[name]}, this machine has {here[name]}: versions would differ. "
                "Install the same there."
            )
