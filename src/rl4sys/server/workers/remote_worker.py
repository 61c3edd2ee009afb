"""A worker on another machine than its host: it is given files and records, and returns events and files.

What goes in and comes out is JSON and bytes. Torch is imported when a worker is created, and not by the process that
asks for one.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
import threading
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rl4sys.config import ConfigError, use_copies
from rl4sys.config.plugin_copies import write_copies
from rl4sys.file_lock import FileLock
from rl4sys.server.learners.claims import mark_unclaimed
from rl4sys.server.logs import send_logs_to_host
from rl4sys.server.workers.events import Event, Failed, Saved
from rl4sys.server.workers.learner_limits import WorkerOptions
from rl4sys.server.workers.sent_events import SentEvents
from rl4sys.server.workers.sent_files import SentFiles, write_part
from rl4sys.server.workers.sent_records import SentRecords, decode_records
from rl4sys.version import __version__

_PLACE = "rl4sys-learner-"
_IN_USE = "in_use"


class RemoteWorker:
    """One run of a learner's worker, in a temporary directory with a copy of the learner's newest checkpoint."""

    def __init__(self, order: str) -> None:
        """`order` is what the host knows: the learner's name and setup, its options, and the text of plug-ins."""
        _remove_abandoned()
        values = json.loads(order)
        place = Path(tempfile.mkdtemp(prefix=_PLACE))
        self._in_use = FileLock.acquire(place / _IN_USE, create=0o600)
        self._place, self._directory = place, place / values["learner"]
        self._directory.mkdir()
        (self._directory / "setup.json").write_text(values["setup"])
        if values["is_unclaimed"]:
            mark_unclaimed(self._directory)
        self._options = WorkerOptions.from_json(values["options"])
        use_copies(write_copies(place, values["plugins"]))
        self._is_paused, self._level = bool(values["is_paused"]), int(values["level"])
        self._events = SentEvents()
        self._files = SentFiles(self._directory, self._events.put)
        self._records: SentRecords | None = None
        self._control: Any = None

    def put_file(self, name: str, offset: int, data: bytes) -> None:
        """Take a part of a file that the host has for the learner."""
        write_part(self._directory, name, offset, data)
        self._files.note_stored([name])

    def start(self, first: int, committed: int) -> str:
        """Begin to fold, with the record `first`; returns what this machine is, as JSON."""
        from rl4sys.server.workers.worker_main import WorkerControl

        self._records = SentRecords(first, committed)
        self._control = WorkerControl(is_paused=self._is_paused)
        threading.Thread(target=self._work, name="learner", daemon=True).start()
        return describe_machine()

    def take_records(self, message: bytes) -> None:
        """Take the next records of the log."""
        assert self._records is not None
        self._records.add(decode_records(message))
        self._control.nudge()

    def request(self, message: str, data: bytes) -> None:
        """Carry out a request of the host; `data` is the command that it wants to have checked."""
        from rl4sys.server.workers.worker_main import obey

        values = json.loads(message)
        match values:
            case {"stored": names}:
                self._files.note_stored(names)
                return
            case {"check": _}:
                file = self._place / "command"
                file.write_bytes(data)
                values["check"] = str(file)
        obey(values, self._directory, self._control, self._events.put)

    def events(self, seconds: float) -> bytes:
        """The events since the last call; waits up to so many seconds for the first one."""
        return self._events.take(seconds)

    def _work(self) -> None:
        from rl4sys.server.workers.learner_config import load_learner_plugins
        from rl4sys.server.workers.limit_check import limit_memory
        from rl4sys.server.workers.worker_main import work

        send_logs_to_host(self._send, self._level)
        try:
            if self._options.memory is not None:
                limit_memory(self._options.memory)
            load_learner_plugins(self._options.plugins)
        except ConfigError as error:
            self._send(Failed(str(error), 0, is_own=True))
            return
        records = self._records
        assert records is not None
        work(self._directory, lambda: records, self._control, self._send, self._options)
        shutil.rmtree(self._place, ignore_errors=True)

    def _send(self, event: Event) -> None:
        """Send an event; a checkpoint is announced after its files."""
        if isinstance(event, Saved):
            self._files.send_checkpoint(event.position)
        self._events.put(event)


def describe_machine() -> str:
    """The name of this machine, and the versions that the bits of a learner depend on, as JSON."""
    versions = {"rl4sys": __version__, "python": platform.python_version(), "torch": version("torch")}
    return json.dumps({"host": platform.node(), "process": os.getpid(), **versions})


def _remove_abandoned() -> None:
    """Remove what workers left that were killed on this machine."""
    for place in Path(tempfile.gettempdir()).glob(f"{_PLACE}*"):
        try:
            lock = FileLock.try_acquire(place / _IN_USE)
        except OSError:
            # It is being made, or belongs to another user.
            continue
        if lock is not None:
            with lock:
                shutil.rmtree(place, ignore_errors=True)
