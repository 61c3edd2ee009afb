"""`events.jsonl`: what happened to a run besides learning, one line each; lines are only ever added."""

from __future__ import annotations

import datetime
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)


def _now() -> datetime.datetime:
    return datetime.datetime.now().astimezone()


class Events:
    """Appends lines; a disk error is logged and does not end the run."""

    def __init__(self, path: Path, now: Callable[[], datetime.datetime] = _now) -> None:
        self.path = path
        self._now = now

    def note(self, step: int, event: str, **details: Any) -> None:
        """Write one line: when, at which step, what, and what is known about it."""
        line = json.dumps({"time": self._now().isoformat(timespec="seconds"), "step": step, "event": event, **details})
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            _log.warning("%s could not be written (%s): %s", self.path, error.strerror, line)
