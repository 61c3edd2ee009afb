"""Logging of the server and its workers, as text or JSON: to standard error and to files in the data directory."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Literal

from rl4sys.atomic_files import make_directory
from rl4sys.server.workers.events import Logged

LogFormat = Literal["text", "json"]
FILE = "server.log"
_FILE_BYTES, _OLD_FILES = 8 << 20, 3
_FIELDS = ("learner", "client", "version")
"""Fields that a line may have besides its message: `_log.info(…, extra={"learner": name})`."""
_OURS = "rl4sys"
_TEXT = "%(asctime)s %(levelname)s %(name)s%(tag)s: %(message)s"

_working_for: ContextVar[str] = ContextVar("learner")


@contextmanager
def send_logs(format: LogFormat, *, debug: bool, directory: Path | None) -> Iterator[None]:
    """Log to standard error and to size-limited files in a directory, within the `with` block."""
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    before = root.handlers[:], root.level, ours.level
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if directory is not None:
        make_directory(directory, mode=0o700)
        handlers.append(RotatingFileHandler(directory / FILE, maxBytes=_FILE_BYTES, backupCount=_OLD_FILES, delay=True))
    for handler in handlers:
        handler.setFormatter(_Json() if format == "json" else logging.Formatter(_TEXT))
        handler.addFilter(_tag)
    root.handlers[:] = handlers
    root.setLevel(logging.INFO)
    ours.setLevel(logging.DEBUG if debug else logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])
        for handler in handlers:
            handler.close()


@contextmanager
def working_for(learner: str) -> Iterator[None]:
    """Tag what this thread logs with the name of a learner, within the `with` block."""
    token = _working_for.set(learner)
    try:
        yield
    finally:
        _working_for.reset(token)


def send_logs_to_host(send: Callable[[Logged], None], level: int) -> None:
    """In a worker process: let the host write the lines, in its format and to its files."""
    logging.getLogger().handlers[:] = [_HostHandler(send)]
    logging.getLogger().setLevel(max(level, logging.INFO))
    logging.getLogger(_OURS).setLevel(level)


def level() -> int:
    """The log level of the server, for its workers to use as well."""
    return logging.getLogger(_OURS).getEffectiveLevel()


def log_again(line: Logged, learner: str) -> None:
    """Log in the host what a worker process logged."""
    logger = logging.getLogger(line.logger)
    if logger.isEnabledFor(line.level):
        record = logging.LogRecord(line.logger, line.level, "", 0, line.message, None, None)
        record.created, record.msecs = line.time, line.time % 1 * 1_000
        record.exc_text = line.exception or None
        record.__dict__ |= line.fields
        with working_for(learner):
            logger.handle(record)


class _HostHandler(logging.Handler):
    """Sends each line to the host."""

    def __init__(self, send: Callable[[Logged], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        exception = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        self._send(Logged(record.created, record.levelno, record.name, record.getMessage(), exception, _fields(record)))


def _tag(record: logging.LogRecord) -> bool:
    """Add the learner that this thread works for, as a field and as a tag of the text."""
    if learner := _working_for.get(""):
        record.__dict__.setdefault("learner", learner)
        record.__dict__["tag"] = f" [learner {learner}]"
    record.__dict__.setdefault("tag", "")
    return True


class _Json(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{second}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        exception = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        return json.dumps(line | ({"exception": exception} if exception else {}))


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: record.__dict__[name] for name in _FIELDS if name in record.__dict__}
