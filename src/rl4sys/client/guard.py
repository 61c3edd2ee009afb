"""Looks after the kill file and the lease in a background thread, so that a decision never has to."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.governor import Governor

_log = logging.getLogger(__name__)
_SECONDS = 0.1
"""Between two looks."""


class Guard:
    """Turns the policy off while the kill file exists, or while the server was silent for longer than the lease."""

    def __init__(
        self,
        governor: Governor,
        status: AgentStatus,
        clock: Callable[[], float],
        kill_file: Path | None,
        lease: float | None,
    ) -> None:
        self._governor = governor
        self._status = status
        self._clock = clock
        self._kill_file = kill_file
        self._lease = lease
        self._heard, self._heard_at = status.heard, clock()
        self._stopping = threading.Event()
        self.look()

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to look after."""
        return self._kill_file is not None or self._lease is not None

    def run(self) -> None:
        """Look until `stop` is called."""
        while not self._stopping.wait(_SECONDS):
            self.look()

    def look(self) -> None:
        """Look once."""
        if self._kill_file is not None:
            self._governor.set_kill_file(self._exists(self._kill_file))
        if self._lease is not None:
            now = self._clock()
            if self._status.heard != self._heard:
                self._heard, self._heard_at = self._status.heard, now
            self._governor.set_lease_over(now - self._heard_at > self._lease)

    def stop(self) -> None:
        """End `run` soon."""
        self._stopping.set()

    def _exists(self, path: Path) -> bool:
        try:
            path.stat()
            return True
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            # Whether the file exists is unknown, and a switch that cannot be read must not leave the policy on.
            if self._status.add("kill_file_unreadable"):
                _log.error("The kill file %s cannot be looked at: %s. The policy is off.", path, error)
            return True
