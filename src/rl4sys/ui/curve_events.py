"""Events of one run: its curves, what is added to them, and changes of its status."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from rl4sys.laboratory.comparison.statistics import Scores
from rl4sys.laboratory.run_index.index import IndexBusy, NoRuns
from rl4sys.laboratory.run_index.records import RunRecord
from rl4sys.ui.index_thread import IndexNotReady
from rl4sys.ui.live_updates import Event
from rl4sys.ui.metric_curves import MetricCurves, thinned
from rl4sys.ui.run_library import RunLibrary, UnknownRun

_SECONDS = 0.4
"""Seconds between two looks at the file."""
_LOOKS_PER_RECORD = 3
"""The record of the run is looked at less often than its metrics."""
_MOST_ADDED = 1000
"""Points that are added to a curve before all of it is sent again, thinned."""


@dataclass(slots=True)
class _SentCurve:
    generation: int = -1
    count: int = 0
    added: int = 0


@dataclass(slots=True)
class CurveFollower:
    """What one page has been sent of the curves of a run."""

    curves: MetricCurves
    run: Path
    metrics: Sequence[str]
    _sent: dict[str, _SentCurve] = field(default_factory=dict)

    def read(self) -> list[Event]:
        """The events that bring the page up to date."""
        whole: dict[str, Any] = {}
        added: dict[str, Any] = {}
        for metric in self.metrics:
            curve = self.curves.read(self.run, metric)
            sent = self._sent.setdefault(metric, _SentCurve())
            count = len(curve.values)
            if curve.generation != sent.generation or sent.added + count - sent.count > _MOST_ADDED:
                whole[metric] = _columns(thinned(curve.points()))
                self._sent[metric] = _SentCurve(curve.generation, count)
            elif count > sent.count:
                added[metric] = _columns(curve.points(sent.count))
                sent.added, sent.count = sent.added + count - sent.count, count
        return [Event(name, data) for name, data in (("curves", whole), ("points", added)) if data]


async def curve_events(
    library: RunLibrary, curves: MetricCurves, name: str, id_: str, metrics: Sequence[str]
) -> AsyncGenerator[Event]:
    """Events for as long as the page is open and the run exists."""
    try:
        record = await run_in_threadpool(library.find, name, id_)
    except (UnknownRun, NoRuns) as error:
        yield Event("gone", str(error))
        return
    follower = CurveFollower(curves, library.root(name) / id_, metrics)
    look = 0
    while True:
        for event in await run_in_threadpool(follower.read):
            yield event
        look += 1
        if look % _LOOKS_PER_RECORD == 0:
            try:
                now = await run_in_threadpool(library.find, name, id_)
            except (UnknownRun, NoRuns) as error:
                yield Event("gone", str(error))
                return
            except (IndexBusy, IndexNotReady):
                now = record
            if _shown(now) != _shown(record):
                yield Event("status")
            record = now
        await asyncio.sleep(_SECONDS)


def _shown(record: RunRecord) -> tuple[object, ...]:
    return record.status, record.cause, record.steps, record.last, record.best, record.tags, record.note


def _columns(points: Scores) -> list[list[float]]:
    """Steps and values, with as many digits as a chart can show."""
    return [[int(step) for step in points[:, 0]], [float(f"{value:.7g}") for value in points[:, 1]]]
