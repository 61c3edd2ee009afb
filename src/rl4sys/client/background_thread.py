"""A daemon thread whose errors are reported, because nothing above it could handle them."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path

from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.signals_blocked import signals_blocked

_log = logging.getLogger(__name__)


def start_thread(name: str, work: Callable[[], None], status: AgentStatus) -> threading.Thread:
    """Run `work` in a daemon thread. An error ends the thread and is reported by `agent.health()`, nothing more."""

    def guarded() -> None:
        _name_for_the_system(f"rl4sys-{name}")
        try:
            work()
        # Nothing above could handle it, and the live system must keep running.
        except Exception as error:
            status.died(name, error)
            _log.exception("The background thread %s died; decisions continue without it.", name)

    thread = threading.Thread(target=guarded, name=f"rl4sys-{name}", daemon=True)
    with signals_blocked():
        thread.start()
    return thread


def _name_for_the_system(name: str) -> None:
    """Show the name of this thread in `top -H` and debuggers, where the system allows it."""
    with contextlib.suppress(OSError):
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
