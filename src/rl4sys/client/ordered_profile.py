"""Measures an agent by order of an operator, and keeps what was measured until the server has it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rl4sys.client.background_thread import start_thread
from rl4sys.client.profile_blocks import block_message
from rl4sys.client.profiler import ProfileOrder, Profiler
from rl4sys.wire.generated import profile_pb2

if TYPE_CHECKING:
    from rl4sys.client.agent import Agent

_MOST_BLOCKS = 256
"""In one report."""
_LONGEST_PROBLEM = 1_024


class OrderedProfile:
    """Carries out one order at a time. The reporter's thread calls it; the profiler has a thread of its own."""

    def __init__(self, agent: Agent, on_end: Callable[[], None]) -> None:
        """`on_end` is called when everything is measured, so that it is reported soon."""
        self._agent = agent
        self._on_end = on_end
        self._lock = threading.Lock()
        self._profiler: Profiler | None = None
        self._progress: profile_pb2.ProfileProgress | None = None

    def progress(self) -> profile_pb2.ProfileProgress | None:
        """What to report; None before the first order."""
        with self._lock:
            if self._progress is None:
                return None
            report = profile_pb2.ProfileProgress()
            report.CopyFrom(self._progress)
        if len(report.blocks) > _MOST_BLOCKS:
            # The others follow, so this is not the end.
            del report.blocks[_MOST_BLOCKS:]
            report.is_complete = False
        return report

    def answered(self, reported: profile_pb2.ProfileProgress | None, order: profile_pb2.ProfileOrder | None) -> None:
        """Take the reply to a report: what was reported is stored, and an order begins or ends."""
        with self._lock:
            if self._progress is not None and reported is not None:
                del self._progress.blocks[: len(reported.blocks)]
                self._progress.first_block += len(reported.blocks)
            known = 0 if self._progress is None else self._progress.sequence
            is_running = self._profiler is not None
        if is_running and (order is None or order.sequence != known):
            self.stop()
        elif not is_running and order is not None and order.sequence > known:
            self._begin(order)

    def stop(self) -> None:
        """End what is being measured soon; the agent returns to its normal state."""
        with self._lock:
            profiler = self._profiler
        if profiler is not None:
            profiler.stop()

    def _begin(self, order: profile_pb2.ProfileOrder) -> None:
        profiler = Profiler(ProfileOrder(order.seconds, order.seed), self._write)
        with self._lock:
            self._progress = profile_pb2.ProfileProgress(sequence=order.sequence)
            if self._agent.is_profiled:
                self._progress.is_complete = True
                self._progress.problem = "it is being measured already, by `rl4sys profile -- COMMAND`"
                return
            self._profiler = profiler
        profiler.add(self._agent)
        start_thread("profiler", profiler.run, self._agent.status)

    def _write(self, line: dict[str, Any]) -> None:
        with self._lock:
            progress = self._progress
            if progress is None:
                return
            if line["kind"] == "block":
                progress.blocks.append(block_message(line))
            elif line["kind"] == "floor" and line["nanoseconds"] is not None:
                progress.floor_nanoseconds = line["nanoseconds"]
            elif line["kind"] == "end":
                progress.is_complete = True
                progress.problem = (line["problem"] or "").encode()[:_LONGEST_PROBLEM].decode(errors="ignore")
                self._profiler = None
        if line["kind"] == "end":
            self._on_end()
