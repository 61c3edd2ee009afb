"""A profile of a few updates: a trace for a browser, and the ten operations that take most, for people."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from rl4sys.learning import Updating

_log = logging.getLogger(__name__)

_FIRST, _COUNT = 2, 3
"""The first update is not typical: it makes what later ones use again."""
_ROWS = 10


class UpdateProfile:
    """Profiles updates 2 to 4 of this process."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen = 0
        self._profile: profile | None = None

    def around(self, update: Updating, batch: Any) -> Any:
        """Do one update, profiled if it is one of those."""
        self._seen += 1
        if self._seen == _FIRST:
            # Without it the profiler prints that it starts and stops.
            os.environ.setdefault("KINETO_LOG_LEVEL", "99")
            activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]
            self._profile = profile(activities=activities)
            self._profile.__enter__()  # type: ignore[no-untyped-call]  # torch does not annotate it
        try:
            return update(batch)
        finally:
            if self._seen == _FIRST + _COUNT - 1:
                self.close()

    def close(self) -> None:
        """Write what was profiled, if anything was and is not written yet."""
        if self._profile is None:
            return
        found, self._profile = self._profile, None
        found.__exit__(None, None, None)  # type: ignore[no-untyped-call]  # as above
        count = min(self._seen, _FIRST + _COUNT - 1) - _FIRST + 1
        table = f"{count} updates, where the processor's time went:\n" + table_of(found.key_averages())
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            (self._directory / "profile.txt").write_text(table + "\n", encoding="utf-8")
            found.export_chrome_trace(str(self._directory / "profile.json.gz"))
        except OSError as error:
            _log.warning("The profile could not be written: %s", error)
        _log.info("%s\nThe whole trace is in %s; open it in chrome://tracing.", table, self._directory)


def table_of(averages: Sequence[Any]) -> str:
    """The operations that take most time themselves, one per line."""
    total = sum(row.self_cpu_time_total for row in averages) or 1.0
    top = sorted(averages, key=lambda row: row.self_cpu_time_total, reverse=True)[:_ROWS]
    rows = [("operation", "calls", "ms", "share", "with what it calls")]
    for row in top:
        own, whole = row.self_cpu_time_total / 1e3, row.cpu_time_total / 1e3
        rows.append((row.key[:48], str(row.count), f"{own:.2f}", f"{own * 1e3 / total:.0%}", f"{whole:.2f} ms"))
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join("  ".join(_cells(row, widths)).rstrip() for row in rows)


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """The name to the left, numbers to the right."""
    return [
        text.rjust(width) if place else text.ljust(width)
        for place, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
