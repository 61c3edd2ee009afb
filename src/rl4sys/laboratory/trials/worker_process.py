"""The process of one trial: it reads its launch from standard input and reports through a pipe.

Standard input stays open as long as the process that launched it lives; when it closes, the task is asked to stop. A
process that is started before there is a launch imports a module meanwhile, which takes seconds.
"""

from __future__ import annotations

import gc
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
from types import FrameType
from typing import Any, NoReturn

from rl4sys.laboratory.trials.launcher import Report, Task
from rl4sys.laboratory.trials.report_pipe import ReportPipe

_ORPHAN_SECONDS = 60.0
"""Seconds that an orphan has to save before it is killed, in case it hangs."""


def main() -> NoReturn:
    """Run the task of a launch; the exit code is that of `run_task`. The arguments: a pipe, and a module to import."""
    pipe = ReportPipe(int(sys.argv[1]))
    stop = StopRequest()
    for module in sys.argv[2:]:
        importlib.import_module(module)
    line = sys.stdin.readline()
    if not line:
        # Prepared for a launch that never came.
        raise SystemExit(0)
    launch = json.loads(line)
    print_to(launch["output"])
    threading.Thread(target=end_with_parent, daemon=True).start()
    code = run_task(launch["task"], launch["values"], pipe.report, stop)
    # Collecting all objects of torch a last time would take most of a second.
    gc.freeze()
    raise SystemExit(code)


def print_to(output: str) -> None:
    """Append what this process prints to a file."""
    descriptor = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        os.dup2(descriptor, stream.fileno())
    os.close(descriptor)


def run_task(task: str, values: Mapping[str, Any], report: Report, stop: StopRequest) -> int:
    """Run a task in this process; returns its exit code: 0 (finished), 130 (stopped) or 1 (failed, with a report)."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s: %(message)s", stream=sys.stderr)
    logging.getLogger("rl4sys").addHandler(_WarningReporter(report))
    try:
        finished = _task(task)(values, report, stop)
    except Exception as error:  # any failure of the task is reported to the launching process
        traceback.print_exc()
        report({"failed": explain(error)})
        return 1
    return 0 if finished else 130


def explain(error: Exception) -> str:
    """A failure in one line; errors of RL4Sys without their type."""
    text = str(error) or type(error).__name__
    return text if type(error).__module__.startswith("rl4sys.") else f"{type(error).__name__}: {text}"


class _WarningReporter(logging.Handler):
    """Reports the warnings of the task, such as alerts: the launching process shows no other output."""

    def __init__(self, report: Report) -> None:
        super().__init__(logging.WARNING)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        self._report({"warning": record.getMessage()})


class StopRequest:
    """Whether SIGTERM has arrived. A second one ends the process at once."""

    def __init__(self) -> None:
        self._received = False
        signal.signal(signal.SIGTERM, self._receive)

    def __call__(self) -> bool:
        return self._received

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._received:
            raise KeyboardInterrupt
        self._received = True


def _task(name: str) -> Task:
    module, _, function = name.partition(":")
    task: Task = getattr(importlib.import_module(module), function)
    return task


def end_with_parent() -> None:
    """Wait until the launching process has ended, then ask this one to stop."""
    # Not sys.stdin: its lock would block the interpreter at exit while this thread reads.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_ORPHAN_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
