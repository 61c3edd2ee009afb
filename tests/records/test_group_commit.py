from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.records.failpoint_files import FailpointFiles
from tests.records.logs import read_all

from rl4sys.records import (
    Backlogged,
    DiskFiles,
    DurableLog,
    LogBroken,
    LogClosed,
    LogFull,
    RecordLog,
    RecordReader,
)


class Gate:
    """Lets a test hold the disk at a sync, and counts the syncs."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.reached = threading.Event()
        self.syncs = 0
        self.fault: OSError | None = None

    def __call__(self, name: str) -> None:
        if name != "before sync":
            return
        self.syncs += 1
        self.reached.set()
        self.open.wait()
        if self.fault is not None:
            raise self.fault


Opened = tuple[DurableLog, Gate]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    gate = Gate()
    log = DurableLog(RecordLog(tmp_path, files=FailpointFiles(DiskFiles(), gate)), max_waiting_bytes=1000)
    yield log, gate
    gate.open.set()
    log.close()


def hold(gate: Gate) -> None:
    gate.open.clear()
    gate.reached.clear()


def test_many_threads_each_get_their_own_numbers(opened: Opened, tmp_path: Path) -> None:
    log, _ = opened

    def appends(thread: int) -> dict[int, bytes]:
        payloads = [f"{thread}-{turn}".encode() for turn in range(20)]
        return {number: payload for payload in payloads for number in log.append_and_wait([payload])}

    with ThreadPoolExecutor(16) as pool:
        told = [pair for numbers in pool.map(appends, range(16)) for pair in numbers.items()]
    assert len(told) == 320
    assert read_all(tmp_path) == dict(told)


def test_one_sync_serves_all_appends_that_came_while_the_disk_was_busy(opened: Opened) -> None:
    log, gate = opened
    before = gate.syncs
    hold(gate)
    first = log.append([b"first"])
    gate.reached.wait()
    others = [log.append([b"other", b"other"]) for _ in range(50)]
    assert not first.done()
    gate.open.set()
    assert [future.result() for future in others] == [range(n, n + 2) for n in range(1, 101, 2)]
    assert gate.syncs - before == 2


def test_no_append_is_done_before_the_sync_has_returned(opened: Opened, tmp_path: Path) -> None:
    log, gate = opened
    hold(gate)
    waiting = log.append([b"a"])
    gate.reached.wait()
    assert not waiting.done()
    assert RecordReader(tmp_path).read() == []
    gate.open.set()
    assert waiting.result() == range(1)
    assert RecordReader(tmp_path).read() == [(0, b"a")]


def test_a_failed_sync_fails_waiting_and_later_appends(opened: Opened) -> None:
    log, gate = opened
    hold(gate)
    gate.fault = OSError(errno.EIO, os.strerror(errno.EIO))
    waiting = [log.append([b"a"]), log.append([b"b"])]
    gate.open.set()
    for future in (*waiting, log.append([b"c"])):
        with pytest.raises(LogBroken, match="Input/output error"):
            future.result()


def test_what_waits_for_the_disk_is_bounded(opened: Opened) -> None:
    log, gate = opened
    hold(gate)
    log.append([b"being written"])
    gate.reached.wait()
    log.append([b"x" * 900])
    with pytest.raises(Backlogged, match="900 bytes waiting"):
        log.append([b"x" * 200])
    gate.open.set()


def test_an_append_cancelled_before_it_is_written_leaves_nothing(opened: Opened, tmp_path: Path) -> None:
    log, gate = opened
    hold(gate)
    log.append([b"a"])
    gate.reached.wait()
    cancelled, kept = log.append([b"b"]), log.append([b"c"])
    assert cancelled.cancel()
    gate.open.set()
    kept.result()
    assert read_all(tmp_path) == {0: b"a", 1: b"c"}


def test_coroutines_share_syncs_as_threads_do(opened: Opened, tmp_path: Path) -> None:
    log, gate = opened
    before = gate.syncs

    async def appends() -> list[range]:
        return await asyncio.gather(*(asyncio.wrap_future(log.append([b"x"])) for _ in range(100)))

    assert asyncio.run(appends()) == [range(number, number + 1) for number in range(100)]
    assert gate.syncs - before < 50
    assert len(read_all(tmp_path)) == 100


def test_closing_writes_waiting_appends_and_refuses_later_ones(opened: Opened, tmp_path: Path) -> None:
    log, _ = opened
    last = [log.append([b"x"]) for _ in range(10)]
    log.close()
    assert [future.result().start for future in last] == list(range(10))
    with pytest.raises(LogClosed):
        log.append([b"late"])


def test_a_full_disk_fails_the_append_and_the_log_still_works(tmp_path: Path) -> None:
    full = [True]

    def reached(name: str) -> None:
        if name == "during append" and full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    log = DurableLog(RecordLog(tmp_path, files=FailpointFiles(DiskFiles(), reached)))
    with pytest.raises(LogFull):
        log.append_and_wait([b"a"])
    full.clear()
    assert log.append_and_wait([b"b"]) == range(1)
    log.close()
    assert read_all(tmp_path) == {0: b"b"}
