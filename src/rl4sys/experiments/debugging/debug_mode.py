"""The debug mode: records gradients, weights and a profile of updates, and changes nothing about them."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.engine import UpdateResult
from rl4sys.experience import Array
from rl4sys.experiments.debugging.failed_updates import FailedUpdates
from rl4sys.experiments.debugging.gradients import GradientChecks, gradients_of
from rl4sys.experiments.debugging.update_profile import UpdateProfile
from rl4sys.learning import Learner, Updating
from rl4sys.run_files import DEBUG, TENSORBOARD

_log = logging.getLogger(__name__)
_BINS = 30


class DebugMode:
    """Watches every update of a learner. A run in debug mode learns the same, bit for bit; it only takes longer."""

    def __init__(self, run: Path, learner: Learner, failures: FailedUpdates, frequency: int) -> None:
        """`frequency` is the number of steps between two looks at gradients and weights."""
        self._directory, self._learner, self._failures, self._frequency = run / DEBUG, learner, failures, frequency
        self._profiling = UpdateProfile(self._directory)
        self._checks = GradientChecks()
        self._directory.mkdir(exist_ok=True)
        self._log = (self._directory / "gradients.jsonl").open("a", encoding="utf-8")
        self._histograms = _histograms(run / TENSORBOARD / DEBUG)
        self._looked_at: int | None = None
        self._has_failed = False
        learner.watch(self._around)

    def _around(self, update: Updating) -> Updating:
        def watched(batch: Any) -> UpdateResult:
            self._failures.before = self._learner.algorithm.train_state.state()
            outcome: UpdateResult = self._profiling.around(update, batch)
            steps = self._learner.steps
            if self._looked_at is None or steps // self._frequency > self._looked_at // self._frequency:
                self._looked_at = steps
                self._try_to_look(steps)
            return outcome

        return watched

    def _try_to_look(self, step: int) -> None:
        """Look, unless the disk took nothing before: no run should end for that."""
        if self._has_failed:
            return
        try:
            self._look(step)
        except OSError as error:
            self._has_failed = True
            _log.warning("Gradients and weights are not noted any more: %s", error)

    def _look(self, step: int) -> None:
        algorithm = self._learner.algorithm
        found = gradients_of(algorithm)
        complaints = self._checks.check(found, step)
        line = {"step": step, "update": self._learner.updates + 1, **found.to_json(), "complaints": complaints}
        self._log.write(json.dumps(line) + "\n")
        self._log.flush()
        if self._histograms is not None:
            weights = {
                f"weights/{group}/{name}": view.detach().cpu().numpy()
                for group, parameters in algorithm.train_state.parameters()
                for name, view in parameters.views.items()
            }
            norms = {f"gradient_norm/{name}": norm for name, norm in (found.norms | found.tensors).items()}
            self._histograms.write(step, norms, weights)

    def close(self) -> None:
        """Write what is left; a full disk was reported before."""
        self._profiling.close()
        with suppress(OSError):
            self._log.close()
        if self._histograms is not None:
            with suppress(OSError):
                self._histograms.close()


def _histograms(directory: Path) -> Histograms | None:
    try:
        return Histograms(directory)
    except ImportError:
        _log.warning("The package 'tensorboard' is not installed: no histograms of weights are written.")
        return None


class Histograms:
    """Histograms of weights and norms of gradients, which TensorBoard shows as a run beside the metrics."""

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
        # Around equal numbers that are huge, numpy cannot make several bins.
        if numbers.min() == numbers.max():
            counts, limits = np.array([len(numbers)]), numbers[:1]
        else:
            counts, edges = np.histogram(numbers, bins=_BINS)
            limits = edges[1:]
        return self._histogram(
            min=numbers.min(),
            max=numbers.max(),
            num=len(numbers),
            sum=numbers.sum(),
            sum_squares=np.square(numbers).sum(),
            bucket_limit=limits.tolist(),
            bucket=counts.astype(float).tolist(),
        )

    def _write(self, event: Any) -> None:
        self._writer.write(event.SerializeToString())
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
