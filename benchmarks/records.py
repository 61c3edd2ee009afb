"""Latency of an acknowledged append with 1, 50 and 200 callers, compared with a bare fdatasync in the same run.

Run `python benchmarks/records.py`; the log is written to the current directory and removed afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from rl4sys.records import Durability, DurableLog, RecordLog, RecordReader

PAYLOAD = os.urandom(2000)
"""About 40 LunarLander steps."""


def percentiles(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    median, high = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    return f"p50 {median * 1e3:7.3f} ms   p99 {high * 1e3:7.3f} ms"


def bare(directory: Path, seconds: float) -> None:
    """Write and fdatasync in a single thread, without a log."""
    file = os.open(directory / "bare", os.O_RDWR | os.O_CREAT)
    times = []
    begin = perf_counter()
    while perf_counter() - begin < seconds:
        os.write(file, PAYLOAD)
        before = perf_counter()
        os.fdatasync(file)
        times.append(perf_counter() - before)
    os.close(file)
    print(f"{'bare fdatasync':34} {len(times) / seconds:9,.0f} /s   {percentiles(times)}")


def by_threads(log: DurableLog, callers: int, seconds: float) -> list[float]:
    times: list[list[float]] = [[] for _ in range(callers)]
    until = perf_counter() + seconds

    def calls(own: list[float]) -> None:
        while (before := perf_counter()) < until:
            log.append_and_wait([PAYLOAD])
            own.append(perf_counter() - before)

    threads = [threading.Thread(target=calls, args=(own,)) for own in times]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [time for own in times for time in own]


def by_coroutines(log: DurableLog, callers: int, seconds: float) -> list[float]:
    times: list[float] = []
    until = perf_counter() + seconds

    async def calls() -> None:
        while (before := perf_counter()) < until:
            await asyncio.wrap_future(log.append([PAYLOAD]))
            times.append(perf_counter() - before)

    async def all_callers() -> None:
        await asyncio.gather(*(calls() for _ in range(callers)))

    asyncio.run(all_callers())
    return times


def by_paced_coroutines(log: DurableLog, callers: int, seconds: float) -> list[float]:
    """Each caller appends five times a second, as connected clients do; the other measurements run at full speed."""
    times: list[float] = []

    async def calls(delay: float) -> None:
        await asyncio.sleep(delay)
        for _ in range(int(seconds * 5)):
            before = perf_counter()
            await asyncio.wrap_future(log.append([PAYLOAD]))
            times.append(perf_counter() - before)
            await asyncio.sleep(max(0.0, before + 0.2 - perf_counter()))

    async def all_callers() -> None:
        await asyncio.gather(*(calls(0.2 * place / callers) for place in range(callers)))

    asyncio.run(all_callers())
    return times


Calls = Callable[[DurableLog, int, float], list[float]]


def acknowledged(directory: Path, what: str, calls: Calls, callers: int, seconds: float) -> None:
    log = DurableLog(RecordLog(directory / f"{what}-{callers}"))
    times = calls(log, callers, seconds)
    log.close()
    print(f"{f'acknowledged, {callers} {what}':34} {len(times) / seconds:9,.0f} /s   {percentiles(times)}")


def reading(directory: Path, payload_bytes: int, megabytes: int) -> None:
    place = directory / f"read-{payload_bytes}"
    log = RecordLog(place, durability=Durability.OS)
    count = megabytes * 1_000_000 // payload_bytes
    begin = perf_counter()
    for _ in range(count // 100):
        log.append([os.urandom(1) * payload_bytes] * 100)
    appending = perf_counter() - begin
    log.close()
    reader = RecordReader(place)
    begin = perf_counter()
    while reader.read():
        pass
    took = perf_counter() - begin
    print(
        f"{f'records of {payload_bytes} bytes':34} "
        f"append {count / appending:9,.0f} /s ({megabytes / appending:5.0f} MB/s)   "
        f"read {count / took:9,.0f} /s ({megabytes / took:5.0f} MB/s)"
    )
    reader.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of each measurement")
    parser.add_argument("--directory", type=Path, default=Path(), help="a directory on the disk to measure")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        directory = Path(name)
        bare(directory, arguments.seconds)
        for callers in (1, 50, 200):
            acknowledged(directory, "threads", by_threads, callers, arguments.seconds)
        for callers in (1, 50, 200):
            acknowledged(directory, "coroutines", by_coroutines, callers, arguments.seconds)
        acknowledged(directory, "at 5 /s each", by_paced_coroutines, 200, arguments.seconds)
        bare(directory, arguments.seconds)
        for payload_bytes in (200, 2000, 20_000):
            reading(directory, payload_bytes, megabytes=50)


if __name__ == "__main__":
    main()
