"""A daemon thread whose errors are reported, because nothing above it could handle them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from rl4sys.client.agent_status import AgentStatus

_log = logging.getLogger(__name__)


def start_thread(name: str, work: Callable[[], None], status: AgentStatus) -> threading.Thread:
    """Run `work` in a daemon thread. An error ends the thread and is reported by `agent.health()`, nothing more."""

    def guarded() -> None:
        try:
            work()
        # Nothing above could handle it, and the live system must keep running.
        except Exception as error:
            status.died(name, error)
            _log.exception("The background thread %s died; decisions continue without it.", name)

    thread = threading.Thread(target=guarded, name=f"rl4sys-{name}", daemon=True)
    thread.start()
    return thread
