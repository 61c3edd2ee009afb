"""Time limits for tests: a test that hangs fails with its name and the stacks of all threads, and the run continues.

pytest-timeout decides when; this plugin decides what happens then:

1. At the limit a signal interrupts the main thread. The processes that the test started are killed, so that no
   `with Popen(…)` waits for them on the way out, and the test fails with the stacks in its report. The method "thread"
   of pytest-timeout would end the whole xdist worker instead: fixtures would not be torn down, and processes would stay
   behind.
2. A main thread that is stuck in C code never handles the signal. After a grace period faulthandler, which needs no
   interpreter lock, dumps the stacks to stderr and ends the worker; xdist names the test and starts another worker, and
   the processes that the dead worker started are killed.

The limit holds for setup and call together, and once more for teardown: pytest cancels it after a failure.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import pytest_timeout

# In seconds. They only end what hangs; the limits are far above what tests take on a busy machine.
LIMITS = {"slow": 600.0, "cluster": 600.0, "faults": 3_600.0, "learning": 7_200.0}
STORM = 12 * 3_600.0
GRACE = 60.0
MARK = "RL4SYS_TESTED_BY"
_TICKS = os.sysconf("SC_CLK_TCK")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--timeout-grace", type=float, default=GRACE, help="Seconds from the time limit to the worker's end."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Mark the processes that tests will start, which inherit it, and keep the stderr that is not captured."""
    config.stash[_STDERR] = os.dup(2)
    worker = getattr(config, "workerinput", None)
    os.environ[MARK] = _mark(worker["testrunuid"], worker["workerid"]) if worker else f"pid-{os.getpid()}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give tests with a marker for long ones their limit; a limit of the test's own or of the command line wins."""
    if config.getoption("timeout") is not None:
        return
    for item in items:
        limits = [seconds for marker, seconds in LIMITS.items() if item.get_closest_marker(marker)]
        if "RL4SYS_STORM" in os.environ:
            limits.append(STORM)
        if limits and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(max(limits)))


def pytest_timeout_set_timer(item: pytest.Item, settings: pytest_timeout.Settings) -> bool | None:
    if threading.current_thread() is not threading.main_thread():
        return None
    began = time.clock_gettime(time.CLOCK_BOOTTIME)

    def interrupt(number: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True
        if pytest_timeout.is_debugging():
            return
        stacks = _stacks()
        killed = [_kill(pid) for pid in _started_here(since=began)]
        ended = "".join(f"\nkilled: {command}" for command in killed)
        pytest.fail(
            f"{item.nodeid} hangs: it did not end within {settings.timeout:g} s.{ended}\n\n{stacks}", pytrace=False
        )

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    if not pytest_timeout.is_debugging():
        grace = item.config.getoption("--timeout-grace", GRACE)
        faulthandler.dump_traceback_later(settings.timeout + grace, exit=True, file=item.config.stash[_STDERR])
    item.stash[_ARMED] = settings
    return True


def pytest_timeout_cancel_timer(item: pytest.Item) -> bool:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.cancel_dump_traceback_later()
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Start the limit once more: after a failure pytest-timeout has cancelled it, and teardown can hang, too."""
    if _ARMED in item.stash:
        item.config.hook.pytest_timeout_set_timer(item=item, settings=item.stash[_ARMED])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
    """In the process that controls the xdist workers: end what a worker that died has left behind."""
    if error is not None:
        for pid in _marked(_mark(node.workerinput["testrunuid"], node.gateway.id)):
            _kill(pid)


_ARMED = pytest.StashKey[pytest_timeout.Settings]()
_STDERR = pytest.StashKey[int]()


def _mark(run: str, worker: str) -> str:
    return f"{run}-{worker}"


def _stacks() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"Stack of {names.get(ident, 'a thread that Python did not start')}:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
    )


def _started_here(since: float) -> list[int]:
    """The processes below this one, and those that left it, which began `since` seconds after the machine started."""
    parents = {}
    young = set()
    for pid in _all_processes():
        with contextlib.suppress(OSError):
            # The name, which may hold blanks and parentheses, is the second field.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            parents[pid] = int(fields[1])
            # The kernel counts in ticks and rounds down.
            if (int(fields[19]) + 1) / _TICKS >= since:
                young.add(pid)
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    ours = (below | set(_marked(os.environ[MARK]))) - {os.getpid()}
    return sorted(pid for pid in ours & young if "multiprocessing.resource_tracker" not in _command(pid))


def _marked(mark: str) -> list[int]:
    """The processes that the tests of one worker started."""
    variable = f"{MARK}={mark}".encode()
    found = []
    for pid in _all_processes():
        with contextlib.suppress(OSError):
            if variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def _all_processes() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def _kill(pid: int) -> str:
    command = _command(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return f"{pid} {command[:200]}"
