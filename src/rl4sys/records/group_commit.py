"""Group commit: many threads or coroutines append to one log, and one sync serves all that wait."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple

from rl4sys.records.errors import Backlogged, LogClosed
from rl4sys.records.record_log import RecordLog


class _Waiting(NamedTuple):
    payloads: Sequence[bytes]
    result: Future[range]


class DurableLog:
    """A `RecordLog` shared by threads. While one sync is under way, the next group gathers, however large.

    Coroutines wait with `await asyncio.wrap_future(log.append(payloads))`.
    """

    def __init__(self, log: RecordLog, max_waiting_bytes: int = 64 << 20) -> None:
        self._log = log
        self._max_waiting_bytes = max_waiting_bytes
        self._ready = threading.Condition(threading.Lock())
        self._waiting: list[_Waiting] = []
        self._waiting_bytes = 0
        self._closing = False
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"commit {log.directory.name}", daemon=True)
        self._thread.start()

    def append(self, payloads: Sequence[bytes]) -> Future[range]:
        """Append records; the future has their numbers once they are safe, or `LogFull` or `LogBroken`.

        One cancelled before its group is written leaves nothing in the log. Raises `Backlogged` when too much waits.
        """
        length = sum(map(len, payloads))
        result: Future[range] = Future()
        with self._ready:
            if self._closing:
                raise LogClosed(f"{self._log.directory} was closed. Open it again to append.")
            if self._waiting and self._waiting_bytes + length > self._max_waiting_bytes:
                raise Backlogged(
                    f"{self._log.directory} has {self._waiting_bytes} bytes waiting for the disk and may have "
                    f"{self._max_waiting_bytes}. Try again later."
                )
            self._waiting.append(_Waiting(payloads, result))
            self._waiting_bytes += length
            self._ready.notify()
        return result

    def append_and_wait(self, payloads: Sequence[bytes]) -> range:
        """Append records and return their numbers when they are safe."""
        return self.append(payloads).result()

    def sync(self) -> None:
        """Wait until every committed record is on the disk, at any durability."""
        with self._writing:
            self._log.sync()

    def prune(self, before: int, *, rotate: bool = False) -> int:
        """Remove the files that hold only records below `before`, between two groups; see `RecordLog.prune`."""
        with self._writing:
            return self._log.prune(before, rotate=rotate)

    def close(self) -> None:
        """Write what is waiting, then close the log."""
        with self._ready:
            self._closing = True
            self._ready.notify()
        self._thread.join()
        self._log.close()

    def _run(self) -> None:
        while group := self._next_group():
            # Cancelled appends are left out; from here on none can be cancelled.
            self._write([waiting for waiting in group if waiting.result.set_running_or_notify_cancel()])

    def _next_group(self) -> list[_Waiting]:
        """All waiting appends, once there is one; empty when the log is closing and none is left."""
        with self._ready:
            while not self._waiting and not self._closing:
                self._ready.wait()
            group, self._waiting, self._waiting_bytes = self._waiting, [], 0
            return group

    def _write(self, group: list[_Waiting]) -> None:
        try:
            with self._writing:
                numbers = self._log.append([payload for waiting in group for payload in waiting.payloads])
                self._log.commit()
        except Exception as error:
            # Every waiting caller must get the error; the log itself knows whether it still works.
            for waiting in group:
                waiting.result.set_exception(error)
            return
        place = numbers.start
        for waiting in group:
            waiting.result.set_result(range(place, place + len(waiting.payloads)))
            place += len(waiting.payloads)
