"""Finds the first difference between two runs in their hash logs and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from rl4sys.experiments.hash_log import HashEntry, read_hash_log
from rl4sys.experiments.metrics import read_metrics
from rl4sys.run_files import HASHES, METRICS

Part = Literal["trajectory", "weights", "algorithm", "metrics"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a repetition first differs from the recorded run."""

    after: int
    """The last step at which both were equal."""
    step: int
    """The first step at which they are known to differ."""
    parts: Mapping[Part, tuple[str, ...]]
    """Names of what differs there: columns of the trajectory, tensors, metrics."""
    values: tuple[str, str] | None = None
    """Recorded and repeated value of the first metric that differs, if metrics do."""

    @property
    def first(self) -> Part:
        """What differed first: the trajectory if it differs, since equal weights cannot have caused that."""
        return next(part for part in ("trajectory", "weights", "algorithm", "metrics") if part in self.parts)

    def json_values(self) -> dict[str, Any]:
        """The difference for `--json`."""
        return {
            "after": self.after,
            "step": self.step,
            "first": self.first,
            "parts": {part: list(names) for part, names in self.parts.items()},
            "values": list(self.values) if self.values else None,
        }


@dataclass(frozen=True, slots=True)
class RunComparison:
    """How much of two runs was compared, and where they first differ."""

    marks: int
    records: int
    until: int
    """The last step that both have."""
    difference: Difference | None


def compare_runs(recorded: Path, repeated: Path, after: int, until: int) -> RunComparison:
    """Compare two run directories over the steps from `after` (included) to `until`.

    Runs of older versions have no hash log and are compared by their metrics alone.
    """
    marks = list(_common_marks(recorded, repeated, after, until))
    records = list(_common_records(recorded, repeated, after, until))
    difference = _earlier(_first_of_marks(marks, after), _first_of_records(records, after))
    reached = [mark.step for mark, _ in marks] + [ours["step"] for ours, _ in records]
    return RunComparison(len(marks), len(records), max(reached, default=after), difference)


def entries_differ(recorded: HashEntry, repeated: HashEntry) -> bool:
    """Whether two entries of the hash log are of different histories."""
    return recorded != repeated


def _common_marks(recorded: Path, repeated: Path, after: int, until: int) -> Iterator[tuple[HashEntry, HashEntry]]:
    """Entries of the same step. The repetition may have stopped in between, with an extra entry."""
    theirs = {mark.step: mark for mark in read_hash_log(repeated / HASHES)}
    for mark in read_hash_log(recorded / HASHES):
        if after <= mark.step <= until and mark.step in theirs:
            yield mark, theirs[mark.step]


def _common_records(
    recorded: Path, repeated: Path, after: int, until: int
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Records of the same step; a step may have one of training and one of an evaluation."""
    theirs: dict[tuple[int, int], Mapping[str, Any]] = dict(_numbered(repeated / METRICS))
    for key, record in _numbered(recorded / METRICS):
        if after < record["step"] <= until and key in theirs:
            yield record, theirs[key]


def _numbered(path: Path) -> Iterator[tuple[tuple[int, int], Mapping[str, Any]]]:
    seen: dict[int, int] = {}
    for record in read_metrics(path):
        number = seen[record["step"]] = seen.get(record["step"], 0) + 1
        yield (record["step"], number), record


def _first_of_marks(marks: Sequence[tuple[HashEntry, HashEntry]], after: int) -> Difference | None:
    for ours, theirs in marks:
        if entries_differ(ours, theirs):
            return _between(ours, theirs, after)
        after = ours.step
    return None


def _between(ours: HashEntry, theirs: HashEntry, after: int) -> Difference:
    """The difference of two entries of one step, narrowed down by the rollouts between the entries."""
    parts: dict[Part, tuple[str, ...]] = {}
    if columns := _names(ours.trajectory, theirs.trajectory):
        parts["trajectory"] = columns
    if tensors := _names(ours.weights, theirs.weights):
        parts["weights"] = tensors
    if states := _names(ours.algorithm, theirs.algorithm):
        parts["algorithm"] = states
    step = ours.step
    if "trajectory" in parts or not parts:
        parts.setdefault("trajectory", ("the steps of a rollout",))
        for mine, other in zip_longest(ours.turns, theirs.turns):
            if mine != other:
                step = (mine or other or (step, 0))[0]
                break
            after = mine[0]
    return Difference(after, step, parts)


def _first_of_records(records: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], after: int) -> Difference | None:
    for ours, theirs in records:
        if names := _names(ours["metrics"], theirs["metrics"]):
            values = (str(ours["metrics"].get(names[0])), str(theirs["metrics"].get(names[0])))
            return Difference(after, ours["step"], {"metrics": names}, values)
        after = ours["step"]
    return None


def _earlier(marks: Difference | None, records: Difference | None) -> Difference | None:
    """The earlier of two differences; that of the hash log if both are at one step."""
    if marks is None or records is None:
        return marks or records
    if records.step < marks.after:
        return records
    metrics = records.parts["metrics"] if records.after <= marks.step else ()
    parts = {**marks.parts, "metrics": metrics} if metrics else dict(marks.parts)
    return Difference(marks.after, marks.step, parts, records.values if metrics else None)


def _names(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> tuple[str, ...]:
    """The names whose values differ, or that only one side has, in the recorded order."""
    names = dict.fromkeys([*ours, *theirs])
    return tuple(name for name in names if ours.get(name) != theirs.get(name))
