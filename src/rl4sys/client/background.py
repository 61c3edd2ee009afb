"""Threads that work behind the back of a live system, and never take it down with them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from rl4sys.client.tally import Tally

_log = logging.getLogger(__name__)


def start(name: str, work: Callable[[], None], tally: Tally) -> threading.Thread:
    """Run `work` until it returns. If it dies, `agent.health()` tells; the system goes on."""

    def guarded() -> None:
        try:
            work()
        # Whatever it is, nobody above could handle it: the owner is told, and the process lives.
        except Exception as error:
            tally.died(name, error)
            _log.exception("The background thread %s died; decisions go on without it.", name)

    thread = threading.Thread(target=guarded, name=f"rl4sys-{name}", daemon=True)
    thread.start()
    return thread
