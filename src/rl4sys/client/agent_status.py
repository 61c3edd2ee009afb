"""What the threads of an agent tell each other and the user: counts, and the state of the connection."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from rl4sys.client.retries import REFUSED_SECONDS

_log = logging.getLogger(__name__)


class AgentStatus:
    """Counters by reason that any thread may add to, for what happens too seldom for a lock to matter."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self.connected = False
        """Whether the last call succeeded."""
        self.last_error: str | None = None
        self.problem: Exception | None = None
        """What the last call that failed met with."""
        self._died: BaseException | None = None
        self._refusals: dict[str, BaseException] = {}
        """What the server said to the threads that it refuses at present."""

    @property
    def stopped(self) -> BaseException | None:
        """Why nothing is sent or received at present; None while it is."""
        return self._died or next(iter(list(self._refusals.values())), None)

    def add(self, reason: str, count: int = 1) -> bool:
        """Count; true the first time, when it is worth telling the user."""
        with self._lock:
            first = reason not in self._counts
            self._counts[reason] += count
            return first

    def count(self, reason: str) -> int:
        """How often it happened."""
        return self._counts[reason]

    def with_prefix(self, prefix: str) -> dict[str, int]:
        """Counts of the reasons `PREFIX:REASON`, by REASON."""
        with self._lock:
            return {n.removeprefix(prefix + ":"): c for n, c in self._counts.items() if n.startswith(prefix + ":")}

    def succeeded(self, name: str) -> None:
        """A call of the thread `name` ended in OK."""
        self._refusals.pop(name, None)
        if not self.connected:
            self.connected = True
            _log.info("Connected to the training server.")

    def failed(self, error: Exception) -> None:
        """A call failed, and will be made again."""
        self.last_error, self.problem = str(error), error
        if self.connected:
            self.connected = False
            _log.warning("Lost the training server: %s Decisions go on; experience is kept.", error)

    def refused(self, name: str, error: Exception) -> None:
        """A call of the thread `name` failed, and will until somebody repairs the cause."""
        is_news = str(error) not in map(str, list(self._refusals.values()))
        self.connected, self.last_error, self.problem = False, str(error), error
        self._refusals[name] = error
        if is_news:
            _log.error(
                "The training server refuses this client: %s Decisions go on; it is asked again every %.0f s.",
                *(error, REFUSED_SECONDS),
            )

    def died(self, name: str, error: Exception) -> None:
        """A background thread ended by an error."""
        self.connected, self._died = False, error
        self.last_error = f"The thread {name} died: {type(error).__name__}: {error}"
