"""The background threads of an agent, as the system sees them."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from tests.client.agents import agent_on
from tests.client.fake_server import FakeServer
from tests.client.waiting import until

FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE}


def threads() -> dict[str, set[int]]:
    """The signals that each thread of this process blocks, by the name of the thread."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        mask = next(line for line in (task / "status").read_text().splitlines() if line.startswith("SigBlk:"))
        blocked = int(mask.split()[1], 16)
        found[(task / "comm").read_text().strip()] = {bit + 1 for bit in range(64) if blocked >> bit & 1}
    return found


def test_background_threads_have_names_for_the_system_and_take_no_signals(tmp_path: Path) -> None:
    names = {f"rl4sys-{name}" for name in ("encoder", "courier", "watcher", "reporter", "guard")}
    with agent_on(FakeServer(), fallback=lambda observation: 0, kill_file=str(tmp_path / "off")):
        until(lambda: names <= threads().keys())
        for name in names:
            assert {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD} <= threads()[name]
            assert not FAULTS & threads()[name]


def test_the_thread_that_connects_takes_signals_as_before() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with agent_on(FakeServer()):
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_a_signal_that_any_thread_may_take_reaches_the_program() -> None:
    arrived = threading.Event()
    earlier = signal.signal(signal.SIGUSR1, lambda number, frame: arrived.set())
    try:
        with agent_on(FakeServer()):
            os.kill(os.getpid(), signal.SIGUSR1)
            assert arrived.wait(10.0)
    finally:
        signal.signal(signal.SIGUSR1, earlier)
