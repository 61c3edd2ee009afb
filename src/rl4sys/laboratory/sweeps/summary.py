"""The summary of a sweep: all trials, and all configurations over their seeds, best first."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rl4sys.atomic_files import replace_file
from rl4sys.experiments import Result, RunDirectory
from rl4sys.laboratory.trials.trial import Trial, run_in

Status = Literal["finished", "failed", "interrupted", "waiting"]


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """The status and returns of one trial."""

    key: str
    changes: Mapping[str, Any]
    seed: int
    status: Status
    steps: int
    last: float | None
    """Mean return of the last evaluation."""
    best: float | None
    """Mean return of the best evaluation."""
    run: str | None
    """Its run directory."""
    cause: str | None
    """Why it failed, if it did."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One configuration of the sweep, over its seeds."""

    label: str
    changes: Mapping[str, Any]
    score: float | None
    """Mean over the finished seeds; None if there are none."""
    deviation: float | None
    """Standard deviation over those seeds, if there are several."""
    finished: int
    trials: int


@dataclass(frozen=True, slots=True)
class SweepSummary:
    """The state of a sweep: configurations ranked by score, and all trials."""

    name: str
    score: Literal["last", "best"]
    """The evaluation that configurations are ranked by."""
    configurations: tuple[Configuration, ...]
    """The best first; those without a score last."""
    trials: tuple[TrialOutcome, ...]

    def write(self, path: Path) -> None:
        """Write the summary as JSON."""
        replace_file(path, json.dumps(asdict(self), indent=1).encode())

    def runs_of(self, configuration: Configuration) -> list[RunDirectory]:
        """The runs of a configuration that were started."""
        return [
            RunDirectory(Path(trial.run))
            for trial in self.trials
            if trial.changes == configuration.changes and trial.run is not None
        ]

    def with_status(self, status: Status) -> tuple[TrialOutcome, ...]:
        """The trials with a status."""
        return tuple(trial for trial in self.trials if trial.status == status)


def summarize(
    name: str, score: Literal["last", "best"], trials: Sequence[Trial], causes: Mapping[str, str]
) -> SweepSummary:
    """Summarize the run directories of trials, with the causes of failures by key."""
    outcomes = tuple(_outcome(trial, causes.get(trial.key)) for trial in trials)
    # Not by label: two samples may have equal labels, which are rounded.
    members: dict[str, list[tuple[Trial, TrialOutcome]]] = {}
    for trial, outcome in zip(trials, outcomes, strict=True):
        members.setdefault(json.dumps(dict(trial.changes)), []).append((trial, outcome))
    configurations = [_configuration(group[0][0], [one for _, one in group], score) for group in members.values()]
    # The sort is stable: ties stay in the order of the sweep.
    configurations.sort(key=lambda one: (one.score is None, -(one.score or 0.0)))
    return SweepSummary(name, score, tuple(configurations), outcomes)


def _outcome(trial: Trial, cause: str | None) -> TrialOutcome:
    directory = run_in(trial.directory)
    result = None if directory is None else Result.read(directory.result)
    status: Status = "waiting" if directory is None else "interrupted"
    if result is not None and result.finished:
        status, cause = "finished", None
    elif cause is not None:
        status = "failed"
    return TrialOutcome(
        key=trial.key,
        changes=trial.changes,
        seed=trial.seed,
        status=status,
        steps=0 if result is None else result.steps,
        last=None if result is None else result.evaluation,
        best=None if result is None else result.best,
        run=None if directory is None else str(directory.path),
        cause=cause,
    )


def _configuration(example: Trial, members: Sequence[TrialOutcome], score: Literal["last", "best"]) -> Configuration:
    finished = [trial for trial in members if trial.status == "finished"]
    scores = [trial.last if score == "last" else trial.best for trial in finished]
    known = [value for value in scores if value is not None]
    return Configuration(
        label=example.label,
        changes=example.changes,
        score=statistics.fmean(known) if known else None,
        deviation=statistics.stdev(known) if len(known) > 1 else None,
        finished=len(finished),
        trials=len(members),
    )
