"""Jobs of a batch system in order of submission, and parts of them: spans, and the split for learning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rl4sys.experience import Array

SPLIT = (0.6, 0.8)
"""Where a workload is cut: training before the first share, validation up to the second, test after it."""

PARTS = ("training", "validation", "test")


class WorkloadTooShort(ValueError):
    """A sequence of jobs is longer than the workload that it should be taken from."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs that were submitted to one machine: a row of each array is a job.

    Times are seconds. `requested` is the run time that the user asked for, which a scheduler may know; `run` is how
    long the job really runs. No job needs more than the machine's `processors`.
    """

    submit: Array
    run: Array
    requested: Array
    needed: Array
    """Processors of each job."""
    processors: int
    """Processors of the machine."""

    def __len__(self) -> int:
        return len(self.submit)

    def span(self, first: int, count: int) -> Workload:
        """`count` consecutive jobs from number `first` on."""
        if first < 0 or first + count > len(self):
            raise WorkloadTooShort(
                f"Jobs {first} to {first + count - 1} were asked for, but this workload has {len(self)} jobs. Choose "
                f"shorter sequences or a longer trace."
            )
        rows = slice(first, first + count)
        return Workload(self.submit[rows], self.run[rows], self.requested[rows], self.needed[rows], self.processors)

    def part(self, name: str) -> Workload:
        """The jobs for `training` (the first 60 %), for `validation` (20 %) or for the final `test` (20 %)."""
        if name not in PARTS:
            raise ValueError(f"part={name!r} is none of {', '.join(PARTS)}.")
        low, high = (round(share * len(self)) for share in SPLIT)
        first, end = {"training": (0, low), "validation": (low, high), "test": (high, len(self))}[name]
        return self.span(first, end - first)

    def sequences(self, count: int, length: int, rng: np.random.Generator) -> list[Workload]:
        """Random spans of `length` jobs; they may overlap."""
        if not 0 < length <= len(self):
            raise WorkloadTooShort(
                f"Sequences of {length} jobs were asked for, but this workload has {len(self)} jobs. Choose sequences "
                f"of 1 to {len(self)} jobs, or a longer trace."
            )
        return [self.span(int(first), length) for first in rng.integers(0, len(self) - length + 1, count)]


def workload(submit: Array, run: Array, requested: Array, needed: Array, processors: int) -> Workload:
    """Jobs sorted by submit time; those submitted together keep their order."""
    order = np.argsort(submit, kind="stable")
    columns = [np.ascontiguousarray(np.asarray(column, np.float64)[order]) for column in (submit, run, requested)]
    counts = np.ascontiguousarray(np.asarray(needed, np.int64)[order])
    for column in (*columns, counts):
        column.flags.writeable = False
    return Workload(columns[0], columns[1], columns[2], counts, processors)
