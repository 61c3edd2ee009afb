"""TensorBoard files of one learner. They are optional: if they fail, learning continues."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_log = logging.getLogger(__name__)


class Curves:
    """Writes scalars over steps; stops at the first failure."""

    def __init__(self, directory: Path, step: int, clock: Callable[[], float] = time.time) -> None:
        self._works = True
        self._clock = clock
        try:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.event_file_writer import EventFileWriter

            self._event, self._summary = Event, Summary
            self._writer = EventFileWriter(str(directory))
            # TensorBoard drops points of this step and later: the log is folded again from here.
            start = SessionLog(status=SessionLog.START)
            self._writer.add_event(Event(step=step + 1, wall_time=clock(), session_log=start))
        except Exception as error:  # learning must not fail with its curves
            self._give_up(error)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write scalars."""
        if not self._works:
            return
        try:
            values = [self._summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
            summary = self._summary(value=values)
            self._writer.add_event(self._event(step=step, wall_time=self._clock(), summary=summary))
        except Exception as error:  # as above
            self._give_up(error)

    def close(self) -> None:
        """Write buffered scalars and close the files."""
        if not self._works:
            return
        try:
            self._writer.close()
        except Exception as error:  # as above
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._works = False
        _log.warning("No more TensorBoard curves are written: %s", error)
