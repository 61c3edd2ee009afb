"""Tasks for a launcher that need no training."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

Report = Callable[[Mapping[str, Any]], None]


def look_around(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Report the cores of this process."""
    print("hello from a task")
    report({"cores": sorted(os.sched_getaffinity(0)), "threads": os.environ["OMP_NUM_THREADS"], "values": values})
    return True


def warn(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Log a warning, and a detail that is not reported."""
    logging.getLogger("rl4sys.tasks").warning("Alert: %s", "slow")
    logging.getLogger("rl4sys.tasks").info("a detail")
    return True


def fail(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Fail."""
    raise ValueError("no such luck")


def die(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """End as when the machine has no memory left."""
    os.kill(os.getpid(), signal.SIGKILL)
    return True


def wait(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Work until asked to stop."""
    report({"pid": os.getpid()})
    while not stop():
        time.sleep(0.01)
    return False
