"""The process of one learner, which `rl4sys.server.nursery_process` forks.

Requests are JSON lines on one pipe; events, log lines among them, come back on another. It saves and leaves when asked
to, and leaves at once, without saving, when its host is gone: a new host may already have started another worker.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import IO

from rl4sys.config import ConfigError
from rl4sys.server.events import Event, Failed, Resolved, write_event
from rl4sys.server.learner_config import canonical, resolve
from rl4sys.server.learner_plugins import load_learner_plugins
from rl4sys.server.logs import send_logs_to_host
from rl4sys.server.work import Control, work

_HOST_IS_GONE = 3
_LONGEST_NAME = 15
"""Of a process, as Linux shows it."""


def main(requests: int, events: int, directory: Path, log_level: int, plugins: tuple[str, ...] = ()) -> None:
    """Work until asked to stop."""
    # What `top` shows.
    Path("/proc/self/comm").write_text(f"rl4sys {directory.name}"[:_LONGEST_NAME])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave_it_to_the_host)
    control, outgoing, writing = Control(), os.fdopen(events, "wb"), threading.Lock()

    def tell(event: Event) -> None:
        with writing:
            try:
                write_event(outgoing, event)
            except BrokenPipeError:
                os._exit(_HOST_IS_GONE)

    def obey(incoming: IO[str]) -> None:
        for line in incoming:
            match json.loads(line):
                case {"nudge": _}:
                    control.nudge()
                case {"stop": _}:
                    control.stop()
                case {"resolve": number, "algorithm": algorithm, "parameters": parameters}:
                    tell(_resolved(number, algorithm, parameters))
        if not control.is_stopping():
            os._exit(_HOST_IS_GONE)

    send_logs_to_host(tell, log_level)
    try:
        load_learner_plugins(plugins)
    except ConfigError as error:
        tell(Failed(str(error), 0))
        return
    threading.Thread(target=obey, args=(os.fdopen(requests, "r"),), name="requests", daemon=True).start()
    work(directory, None, control, tell)


def _resolved(number: int, algorithm: str, parameters: dict[str, object]) -> Resolved:
    try:
        return Resolved(number, canonical(resolve(algorithm, parameters)), "")
    except ConfigError as error:
        return Resolved(number, "", str(error))


def _leave_it_to_the_host(number: int, frame: FrameType | None) -> None:
    """Take no notice of a signal: Ctrl-C reaches both, and the host decides."""
