"""Counters and connection state, shared by the threads of an agent and reported by `agent.health()`."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from rl4sys.client.retries import REFUSED_SECONDS

_log = logging.getLogger(__name__)


class AgentStatus:
    """Counts rare events by name and tracks whether the server can be reached. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self.heard = 0
        """How often the server replied; a change shows that it was heard of."""
        self.warning: str | None = None
        """What the server said is wrong with this client; None if nothing is."""
        self.connected = False
        """Whether the last call succeeded."""
        self.last_error: str | None = None
        self.problem: Exception | None = None
        """The error of the last failed call."""
        self._died: BaseException | None = None
        self._refusals: dict[str, BaseException] = {}
        """The error of each thread that the server refuses at present."""

    @property
    def stopped(self) -> BaseException | None:
        """The error that stops sending or receiving at present; None while both work."""
        return self._died or next(iter(list(self._refusals.values())), None)

    def add(self, reason: str, count: int = 1) -> bool:
        """Count an event; true the first time, when it deserves a log line."""
        with self._lock:
            first = reason not in self._counts
            self._counts[reason] += count
            return first

    def bad_input(self, problem: Exception) -> None:
        """Count an observation or decision that cannot be used, and log the first one."""
        if self.add("bad_inputs"):
            _log.warning("An observation cannot be used: %s Later ones are only counted: see health().", problem)

    def count(self, reason: str) -> int:
        """How often an event happened."""
        return self._counts[reason]

    def with_prefix(self, prefix: str) -> dict[str, int]:
        """The counts of all events `PREFIX:REASON`, by REASON."""
        with self._lock:
            return {n.removeprefix(prefix + ":"): c for n, c in self._counts.items() if n.startswith(prefix + ":")}

    def succeeded(self, name: str) -> None:
        """Note that a call of the thread `name` succeeded."""
        self.heard += 1
        self._refusals.pop(name, None)
        if not self.connected:
            self.connected = True
            _log.info("Connected to the training server.")

    def warn(self, warning: str) -> None:
        """Take what the server says is wrong with this client; empty if nothing is."""
        if warning and warning != self.warning:
            _log.warning("The training server warns: %s", warning)
        self.warning = warning or None

    def failed(self, error: Exception) -> None:
        """Note a failed call that will be retried."""
        self.last_error, self.problem = str(error), error
        if self.connected:
            self.connected = False
            _log.warning("Lost the training server: %s Decisions continue; experience is kept.", error)

    def refused(self, name: str, error: Exception) -> None:
        """Note a failed call of the thread `name` that fails again until its cause is repaired."""
        is_new = str(error) not in map(str, list(self._refusals.values()))
        self.connected, self.last_error, self.problem = False, str(error), error
        self._refusals[name] = error
        if is_new:
            _log.error(
                "The training server refuses this client: %s Decisions continue; the client tries again every %.0f s.",
                *(error, REFUSED_SECONDS),
            )

    def died(self, name: str, error: Exception) -> None:
        """Note that an error ended a background thread."""
        self.connected, self._died = False, error
        self.last_error = f"The thread {name} died: {type(error).__name__}: {error}"
