"""The audit log of a server: every command of an operator, also a refused one, as a line of JSON. It only grows."""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path

from rl4sys.atomic_files import sync_directory
from rl4sys.wire.generated import operations_pb2

_FILE = "audit.jsonl"
_LONGEST_TEXT = 1_024
_LONGEST_NAME = 256


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One command: who called from where, what it was, why, and its result."""

    time: float
    """When it ended, in seconds since 1970."""
    who: str
    """As `Caller.who` names the caller."""
    operator_name: str
    """Who the caller says it is."""
    peer: str
    role: str
    learner: str
    command: str
    arguments_json: str
    reason: str
    result: str
    """`OK`, or the name of the status code."""
    message: str

    def to_message(self) -> operations_pb2.AuditEntry:
        """The entry as it is sent."""
        return operations_pb2.AuditEntry(**asdict(self))


class AuditLog:
    """Appends entries, each synced before the call that it is about returns. Any thread may call any method."""

    def __init__(self, data: Path) -> None:
        self._path = data / _FILE
        self._lock = threading.Lock()

    def append(self, record: AuditRecord) -> None:
        """Write one entry. A line that a crash cut short is completed first, so that the next one can be read."""
        names = {"operator_name", "learner", "command", "who", "peer"}
        cut = {
            name: value[: _LONGEST_NAME if name in names else _LONGEST_TEXT] if isinstance(value, str) else value
            for name, value in asdict(record).items()
        }
        line = json.dumps(cut).encode() + b"\n"
        with self._lock:
            is_new = not self._path.exists()
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    line = b"\n" + line
                os.write(descriptor, line)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if is_new:
                sync_directory(self._path.parent)

    def newest(self, most: int, learner: str = "") -> list[AuditRecord]:
        """The last entries, the oldest of them first; those of one learner, if it is given."""
        found: deque[AuditRecord] = deque(maxlen=most)
        try:
            with self._path.open("rb") as file:
                for line in file:
                    record = _read(line)
                    if record is not None and learner in ("", record.learner):
                        found.append(record)
        except FileNotFoundError:
            return []
        return list(found)


def _read(line: bytes) -> AuditRecord | None:
    """An entry; None for a line that a crash cut short."""
    try:
        return AuditRecord(**json.loads(line))
    except (ValueError, TypeError):
        return None
