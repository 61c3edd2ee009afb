"""The pipe through which a process reports to the one that launched it: one line of JSON for each report."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any


class ReportPipe:
    """The end of the process that was launched."""

    def __init__(self, descriptor: int) -> None:
        # Processes that the task starts must not keep the pipe open after the task has ended.
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def report(self, values: Mapping[str, Any]) -> None:
        """Send values; a reader that is gone does not make the trial fail."""
        line = json.dumps(values).encode() + b"\n"
        with self._lock, suppress(BrokenPipeError):
            while line:
                line = line[os.write(self._descriptor, line) :]


class ReportReader:
    """The end of the process that launched it."""

    def __init__(self) -> None:
        self.descriptor, self.writing_end = os.pipe()
        """The latter is for the new process, and has to be closed here once it has started."""
        os.set_blocking(self.descriptor, False)
        self.has_ended = False
        """Whether the other end is closed, and everything was read."""
        self._rest = b""

    def read(self) -> Iterator[dict[str, Any]]:
        """The reports that have arrived in full."""
        while not self.has_ended:
            try:
                data = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                return
            self.has_ended = not data
            *lines, self._rest = (self._rest + data).split(b"\n")
            yield from (json.loads(line) for line in lines)

    def close(self) -> None:
        """Close this end."""
        os.close(self.descriptor)
