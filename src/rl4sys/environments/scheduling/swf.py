"""Reads and writes workloads in the standard workload format (SWF) of the Parallel Workloads Archive.

A line is a job of 18 numbers; a line that begins with ';' is a comment, and may name the size of the machine.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rl4sys.environments.scheduling.workload import Workload, workload

COLUMNS = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
_SUBMIT, _RUN, _ALLOCATED, _REQUESTED_PROCESSORS, _REQUESTED_TIME = 1, 3, 4, 7, 8
_GZIP = b"\x1f\x8b"
_SIZE = re.compile(r";\s*(MaxProcs|MaxNodes)\s*:\s*(\d+)", re.IGNORECASE)


class TraceUnreadable(ValueError):
    """A file is missing or is not a trace in the standard workload format."""


@dataclass(frozen=True, slots=True)
class SwfTrace:
    """A workload that was read from a file, and how many of the file's jobs never ran."""

    jobs: Workload
    dropped: int
    """Jobs without run time or without processors, such as those cancelled in the queue."""


def read_swf(path: Path, processors: int | None = None) -> SwfTrace:
    """The jobs of a trace, plain or gzip-compressed, sorted by submit time.

    A job needs the larger of its allocated and requested processors, and asked for its run time if the requested time
    is missing. `processors` is the size of the machine; None takes MaxProcs or MaxNodes from the header comments.
    """
    sizes: dict[str, int] = {}
    rows: list[tuple[float, float, float, int]] = []
    lines: list[int] = []
    dropped = 0
    for number, line in enumerate(_lines(path), 1):
        text = line.strip()
        if text.startswith(";"):
            if found := _SIZE.match(text):
                sizes[found[1].lower()] = int(found[2])
            continue
        if not text:
            continue
        values = _numbers(path, number, text)
        needed = int(max(values[_ALLOCATED], values[_REQUESTED_PROCESSORS]))
        run, asked = values[_RUN], values[_REQUESTED_TIME]
        if run <= 0 or needed <= 0:
            dropped += 1
            continue
        rows.append((values[_SUBMIT], run, asked if asked > 0 else run, needed))
        lines.append(number)
    if not rows:
        raise TraceUnreadable(f"{path} contains no job that ran. Expected lines of {len(COLUMNS)} numbers (SWF).")
    size = processors or sizes.get("maxprocs") or sizes.get("maxnodes") or max(row[3] for row in rows)
    _check_sizes(path, rows, lines, size)
    submit, run_times, requested, counts = (np.array(column) for column in zip(*rows, strict=True))
    return SwfTrace(workload(submit, run_times, requested, counts, size), dropped)


def write_swf(jobs: Workload, path: Path) -> None:
    """Write a workload as a trace that `read_swf` reads back, compressed if the name ends in .gz."""
    head = f"; Version: 2.2\n; MaxJobs: {len(jobs)}\n; MaxProcs: {jobs.processors}\n"
    columns = zip(jobs.submit, jobs.run, jobs.requested, jobs.needed, strict=True)
    body = "".join(
        f"{number} {submit:.10g} -1 {run:.10g} {needed} -1 -1 {needed} {requested:.10g} -1 1 -1 -1 -1 -1 -1 -1 -1\n"
        for number, (submit, run, requested, needed) in enumerate(columns, 1)
    )
    data = (head + body).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _lines(path: Path) -> Iterator[str]:
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else error
        raise TraceUnreadable(
            f"The trace {path} cannot be read: {reason}. Expected a file in the standard workload format, plain or .gz."
        ) from error
    # Comments of old traces are written in many encodings; jobs are ASCII.
    yield from data.decode("utf-8", "replace").splitlines()


def _numbers(path: Path, number: int, text: str) -> list[float]:
    """The 18 columns of a job; columns after them are ignored."""
    words = text.split()
    if len(words) < len(COLUMNS):
        raise TraceUnreadable(
            f"{path}, line {number}, column {len(words) + 1} ({COLUMNS[len(words)]}) is missing: a job has "
            f"{len(COLUMNS)} columns, this line has {len(words)}."
        )
    values = []
    for column, word in enumerate(words[: len(COLUMNS)]):
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise TraceUnreadable(
                f"{path}, line {number}, column {column + 1} ({COLUMNS[column]}) is {word[:40]!r}; expected a number, "
                f"or -1 if it is unknown."
            )
        values.append(value)
    return values


def _check_sizes(path: Path, rows: list[tuple[float, float, float, int]], lines: list[int], size: int) -> None:
    for (*_, needed), number in zip(rows, lines, strict=True):
        if needed > size:
            raise TraceUnreadable(
                f"{path}, line {number}, column {_ALLOCATED + 1} or {_REQUESTED_PROCESSORS + 1}: the job needs "
                f"{needed} processors, but the machine has {size}. Give the size of the machine, at least {needed}."
            )
