"""Histograms of weights and norms of gradients, as event files that TensorBoard shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.experience import Array

_BINS = 30


class Histograms:
    """Written into a directory of its own: TensorBoard shows it as a run beside the metrics."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary, self._histogram, self._clock = Event, Summary, HistogramProto, clock
        directory.mkdir(parents=True, exist_ok=True)
        self._writer = RecordWriter((directory / f"events.out.tfevents.{time.time_ns()}").open("wb"))
        self._write(Event(wall_time=clock(), file_version="brain.Event:2"))

    def write(self, step: int, scalars: Mapping[str, float], arrays: Mapping[str, Array]) -> None:
        """Write numbers and the distributions of arrays, all by name."""
        values = [self._summary.Value(tag=name, simple_value=value) for name, value in scalars.items()]
        values += [self._summary.Value(tag=name, histo=self._of(array)) for name, array in arrays.items()]
        self._write(self._event(step=step, wall_time=self._clock(), summary=self._summary(value=values)))

    def _of(self, array: Array) -> Any:
        """The distribution of what is finite."""
        numbers = np.asarray(array, np.float64).ravel()
        numbers = numbers[np.isfinite(numbers)]
        if not len(numbers):
            return self._histogram()
        counts, edges = np.histogram(numbers, bins=_BINS)
        return self._histogram(
            min=numbers.min(),
            max=numbers.max(),
            num=len(numbers),
            sum=numbers.sum(),
            sum_squares=np.square(numbers).sum(),
            bucket_limit=edges[1:].tolist(),
            bucket=counts.astype(float).tolist(),
        )

    def _write(self, event: Any) -> None:
        self._writer.write(event.SerializeToString())
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
