"""Curves of metrics, read from `metrics.jsonl` as it grows.

A file is read once, and later only from where the last reading ended. Resuming a run cuts its file: a curve whose
beginning was cut is read again. Only whole lines count; a line that is being written is read the next time.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import threading
from array import array
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rl4sys.laboratory.comparison.statistics import Scores
from rl4sys.run_files import METRICS, parse_record

TIMING = "timing/"
"""Before the names of `timing` in a record, such as `timing/steps_per_second`."""
_TAIL = 64
"""Bytes before the end of a reading that must be unchanged for the next one to continue there."""
_SHORT_LINE = 300
_START = b'{"step": '
_STEP = re.compile(rb'^\{"step": (\d+),', re.MULTILINE)


@dataclass(slots=True)
class GrowingCurve:
    """One metric of one run, as far as it was read."""

    steps: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))
    offset: int = 0
    """Bytes of the file that were read."""
    tail: bytes = b""
    generation: int = 0
    """Grows when the file was cut and the curve was read again from its beginning."""

    def points(self, start: int = 0) -> Scores:
        """Rows of step and value, from a row on, in the order of steps."""
        rows = np.column_stack([np.array(self.steps[start:]), np.array(self.values[start:])])
        if len(rows) and bool((np.diff(rows[:, 0]) < 0).any()):
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return rows

    def read(self, path: Path, metric: str) -> None:
        """Take what was added to the file."""
        try:
            with path.open("rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                if size == self.offset and not self.offset:
                    return
                if not self._continues(file.fileno(), size):
                    self._begin_again()
                data = os.pread(file.fileno(), size - self.offset, self.offset) if size > self.offset else b""
        except FileNotFoundError:
            if self.offset:
                self._begin_again()
            return
        whole = data[: data.rfind(b"\n") + 1]
        if whole:
            self._take(whole, metric)
            self.offset += len(whole)
            self.tail = (self.tail + whole[-_TAIL:])[-_TAIL:]

    def _continues(self, file: int, size: int) -> bool:
        length = len(self.tail)
        return size >= self.offset and os.pread(file, length, self.offset - length) == self.tail

    def _begin_again(self) -> None:
        self.steps, self.values = array("d"), array("d")
        self.offset, self.tail, self.generation = 0, b"", self.generation + 1

    def _take(self, data: bytes, metric: str) -> None:
        if "/" in metric and not metric.startswith(TIMING):
            _search(data, metric, self.steps, self.values)
            return
        # Other names may occur twice in a line.
        group, name = ("timing", metric.removeprefix(TIMING)) if metric.startswith(TIMING) else ("metrics", metric)
        for line in data.splitlines():
            record = parse_record(line)
            value = None if record is None else record.get(group, {}).get(name)
            if record is not None and value is not None:
                self.steps.append(record["step"])
                self.values.append(value)


def _search(data: bytes, metric: str, steps: array[float], values: array[float]) -> None:
    """Append the points of a metric; searching for its name is ten times as fast as parsing every line."""
    key = json.dumps(metric).encode() + b": "
    if _search_dense(data, key, steps, values):
        return
    place, end = data.find(key), 0
    while place >= 0:
        begin = data.rfind(b"\n", end, place) + 1
        first = place + len(key)
        end = data.find(b"\n", first)
        try:
            if not data.startswith(_START, begin):
                raise ValueError("written by another program")
            step = float(data[begin + len(_START) : data.find(b",", begin, place)])
            comma, brace = data.find(b",", first, end), data.find(b"}", first, end)
            value = float(data[first : min(comma, brace) if comma >= 0 else brace])
        except ValueError:
            # `null`, or a line that is laid out in another way.
            record = parse_record(data[begin:end])
            found = None if record is None else record["metrics"].get(metric)
            step, value = (0.0, math.nan) if record is None or found is None else (record["step"], found)
        if math.isfinite(value):
            steps.append(step)
            values.append(value)
        place = data.find(key, end)


def _search_dense(data: bytes, key: bytes, steps: array[float], values: array[float]) -> bool:
    """The same for a metric that every line has, in less time if lines are short; false if they are not like that."""
    lines = data.count(b"\n")
    if len(data) > _SHORT_LINE * lines:
        return False
    found = re.findall(re.escape(key) + rb"([^,}\n]+)", data)
    begun = _STEP.findall(data) if len(found) == lines else []
    if len(begun) != lines:
        return False
    try:
        numbers = np.array(found).astype(np.float64)
    except ValueError:
        return False
    if not bool(np.isfinite(numbers).all()):
        return False
    steps.frombytes(np.array(begun).astype(np.float64).tobytes())
    values.frombytes(numbers.tobytes())
    return True


class MetricCurves:
    """The curves that pages have asked for, the most recent ones of all runs."""

    def __init__(self, most: int = 600) -> None:
        self._most = most
        self._curves: OrderedDict[tuple[Path, str], GrowingCurve] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, run: Path, metric: str) -> GrowingCurve:
        """A curve, up to date. It must not be changed."""
        with self._lock:
            curve = self._curves.setdefault((run, metric), GrowingCurve())
            self._curves.move_to_end((run, metric))
            if len(self._curves) > self._most:
                self._curves.popitem(last=False)
            curve.read(run / METRICS, metric)
        return curve


def thinned(points: Scores, most: int = 2000) -> Scores:
    """At most this many rows of step and value; the lowest and the highest value of every part are kept."""
    if len(points) <= most:
        return points
    edges = np.linspace(0, len(points), max(1, most // 2) + 1).astype(int)
    kept: list[int] = []
    for start, end in itertools.pairwise(edges):
        part = points[start:end, 1]
        kept += sorted({start + int(part.argmin()), start + int(part.argmax())})
    return points[kept]
