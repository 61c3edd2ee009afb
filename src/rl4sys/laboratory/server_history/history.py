"""Reads the history in the data directory of a server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rl4sys.server.service.server_history import HISTORY_FILES

Line = dict[str, Any]


class NoHistory(ValueError):
    """A directory without a history to draw."""


def read_history(data: Path, hours: float | None = None) -> list[Line]:
    """The lines in order, or those of the last hours; what a crash cut short is left out."""
    if not data.is_dir():
        raise NoHistory(f"There is no directory {data}; give the data directory of a server (`rl4sys serve --data`).")
    lines = [line for name in HISTORY_FILES for line in _lines(data / name)]
    if len(lines) < 2:
        raise NoHistory(
            f"{data} has no history yet. A server writes a line every ten seconds; is this its data directory?"
        )
    since = 0.0 if hours is None else lines[-1]["time"] - 3600 * hours
    return [line for line in lines if line["time"] >= since]


def learner_series(lines: Sequence[Line], name: str, value: str) -> tuple[list[float], list[float]]:
    """Times and values of a learner, from the lines in which it changed."""
    pairs = [
        (line["time"], line["learners"][name][value])
        for line in lines
        if name in line["learners"] and line["learners"][name][value] is not None
    ]
    return [time for time, _ in pairs], [float(number) for _, number in pairs]


def rates(times: Sequence[float], counts: Sequence[float]) -> tuple[list[float], list[float]]:
    """How fast a counter grew; a counter that went back, since the server started again, counts from zero."""
    found = [
        (after, (new - old if new >= old else new) / (after - before))
        for before, after, old, new in zip(times, times[1:], counts, counts[1:], strict=False)
        if after > before
    ]
    return [time for time, _ in found], [rate for _, rate in found]


def _lines(path: Path) -> Iterator[Line]:
    if not path.exists():
        return
    for text in path.read_text().splitlines():
        try:
            yield json.loads(text)
        except json.JSONDecodeError:
            # The line that was being written when the server was killed.
            continue
