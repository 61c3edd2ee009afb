"""A process that carries out one order: it comes by standard input, reports go out through a pipe.

Standard input stays open as long as whoever gave the order lives; when it closes, the task is asked to stop.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from rl4sys.laboratory.trials.launcher import Report, Task

_GRACE = 60.0
"""Seconds that an orphan has to save; a hung one must not live on."""


def main() -> NoReturn:
    """Do what the order says, and tell how it ended by the exit code: 0, 130 (stopped) or 1 (with a report)."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s: %(message)s", stream=sys.stderr)
    outlet = _Outlet(int(sys.argv[1]))
    logging.getLogger("rl4sys").addHandler(_Relay(outlet.report))
    wish = _WishToStop()
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        finished = _task(order["task"])(order["values"], outlet.report, wish)
    except Exception as error:  # whatever it is, the parent tells it beside the outcome of the others
        traceback.print_exc()
        outlet.report({"failed": explain(error)})
        raise SystemExit(1) from None
    raise SystemExit(0 if finished else 130)


def explain(error: Exception) -> str:
    """A failure in one line; our own errors speak for themselves."""
    text = str(error) or type(error).__name__
    return text if type(error).__module__.startswith("rl4sys.") else f"{type(error).__name__}: {text}"


class _Outlet:
    """The pipe to whoever gave the order."""

    def __init__(self, descriptor: int) -> None:
        # Processes that the task starts must not keep it open after the task has ended.
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def report(self, facts: Mapping[str, Any]) -> None:
        """Tell something; when nobody listens any more, no trial should fail for that."""
        line = json.dumps(facts).encode() + b"\n"
        with self._lock, suppress(BrokenPipeError):
            while line:
                line = line[os.write(self._descriptor, line) :]


class _Relay(logging.Handler):
    """Hands on what the task warns of, such as alerts: whoever gave the order looks at no other output."""

    def __init__(self, report: Report) -> None:
        super().__init__(logging.WARNING)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        self._report({"warning": record.getMessage()})


class _WishToStop:
    """Whether SIGTERM came. A second one ends the process at once."""

    def __init__(self) -> None:
        self._asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def __call__(self) -> bool:
        return self._asked

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True


def _task(name: str) -> Task:
    module, _, function = name.partition(":")
    task: Task = getattr(importlib.import_module(module), function)
    return task


def _end_with_parent() -> None:
    # Not sys.stdin, whose lock a blocked thread would keep until after the interpreter has gone.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
